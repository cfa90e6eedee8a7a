"""Small convolutional net; gradients of four micro-batches are averaged before each step, the step is compiled."""
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_map
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.set_default_device(mx.cpu)
MICRO, PARTS, EPOCHS = 16, 4, 16


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 24)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(24 * 16, 10)

    def __call__(self, x):
        x = nn.relu(self.conv1(x))
        x = nn.relu(self.norm(self.conv2(x)))
        return self.out(self.drop(x.reshape(x.shape[0], -1)))


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, label_smoothing=0.05, reduction="mean")


mx.random.seed(65)
rng = np.random.default_rng(65)
digits = load_digits()
images = ((digits.images[..., None] / 16.0 - 0.305) / 0.376).astype(np.float32)
x_train, x_val, y_train, y_val = train_test_split(
    images, digits.target.astype(np.int32), test_size=0.25, random_state=65, stratify=digits.target
)
model = ConvNet()
steps = EPOCHS * (len(x_train) // (MICRO * PARTS))
optimizer = optim.AdamW(learning_rate=optim.cosine_decay(4e-3, steps), weight_decay=0.01)
value_and_grad = nn.value_and_grad(model, loss_fn)
mx.eval(model.parameters())
state = [model.state, mx.random.state]


@partial(mx.compile, inputs=state, outputs=state)
def micro_step(x, y):
    return value_and_grad(model, x, y)


def evaluate():
    model.eval()
    logits = model(mx.array(x_val))
    y = mx.array(y_val)
    result = nn.losses.cross_entropy(logits, y, reduction="mean").item(), mx.mean(mx.argmax(logits, -1) == y).item()
    model.train()
    return result


for epoch in range(1, EPOCHS + 1):
    order = rng.permutation(len(x_train))
    losses = []
    for start in range(0, len(order) - MICRO * PARTS + 1, MICRO * PARTS):
        gathered = None
        for part in range(PARTS):
            rows = order[start + part * MICRO : start + (part + 1) * MICRO]
            loss, grads = micro_step(mx.array(x_train[rows]), mx.array(y_train[rows]))
            grads = tree_map(lambda g: g / PARTS, grads)
            gathered = grads if gathered is None else tree_map(mx.add, gathered, grads)
            mx.eval(gathered, loss, state)
            losses.append(loss.item())
        optimizer.update(model, gathered)
        mx.eval(model.parameters(), optimizer.state)
    if epoch % 2 == 0:
        val_loss, acc = evaluate()
        print(f"epoch {epoch:2d}: loss {np.mean(losses):.4f} val {val_loss:.4f} acc {acc:.3f}")
