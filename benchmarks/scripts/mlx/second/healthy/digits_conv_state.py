from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.set_default_device(mx.cpu)
mx.random.seed(1)
EPOCHS, BATCH = 8, 64


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm(8)
        self.c2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def __call__(self, x):
        x = nn.relu(self.bn(self.c1(x)))
        x = nn.relu(self.c2(x))
        return self.fc(self.drop(x.reshape(x.shape[0], -1)))


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, label_smoothing=0.05, reduction="mean")


images = load_digits().images[..., None].astype(np.float32) / 16.0
x_train, x_test, y_train, y_test = train_test_split(images, load_digits().target, test_size=0.25, random_state=1)
x_test, y_test = mx.array(x_test), mx.array(y_test)

steps = EPOCHS * (len(x_train) // BATCH)
schedule = optim.join_schedules([optim.linear_schedule(1e-5, 3e-3, 25), optim.cosine_decay(3e-3, steps - 25)], [25])
model = ConvNet()
optimizer = optim.AdamW(learning_rate=schedule, weight_decay=1e-3)
mx.eval(model.parameters())
state = [model.state, optimizer.state, mx.random.state]


@partial(mx.compile, inputs=state, outputs=state)
def step(x, y):
    loss, grads = nn.value_and_grad(model, loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


rng = np.random.default_rng(1)
for epoch in range(1, EPOCHS + 1):
    model.train()
    order = rng.permutation(len(x_train))
    losses = []
    for i in range(0, len(order) - BATCH + 1, BATCH):
        b = order[i : i + BATCH]
        loss = step(mx.array(x_train[b]), mx.array(y_train[b]))
        mx.eval(state)
        losses.append(loss.item())
    model.eval()
    acc = mx.mean(mx.argmax(model(x_test), axis=1) == y_test).item()
    print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}  lr {optimizer.learning_rate.item():.2e}  test accuracy {acc:.4f}")
