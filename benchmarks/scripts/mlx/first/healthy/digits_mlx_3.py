import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits


class MLP(nn.Module):
    def __init__(self, dims, hidden, classes):
        super().__init__()
        self.l1 = nn.Linear(dims, hidden)
        self.l2 = nn.Linear(hidden, hidden)
        self.l3 = nn.Linear(hidden, classes)

    def __call__(self, x):
        return self.l3(nn.relu(self.l2(nn.relu(self.l1(x)))))


mx.random.seed(3)
rng = np.random.default_rng(3)
data = load_digits()
order = rng.permutation(len(data.data))
x, y = (data.data[order] / 16).astype(np.float32), data.target[order].astype(np.int32)
x_train, y_train, x_val, y_val = x[:1440], y[:1440], mx.array(x[1440:]), mx.array(y[1440:])
EPOCHS, BATCH = 14, 48
steps = EPOCHS * len(x_train) // BATCH

model = MLP(64, 64, 10)
warmup = optim.linear_schedule(1e-6, 3e-3, steps=80)
decay = optim.cosine_decay(3e-3, decay_steps=steps - 80, end=1e-5)
optimizer = optim.AdamW(learning_rate=optim.join_schedules([warmup, decay], [80]), weight_decay=1e-3)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, label_smoothing=0.1, reduction="mean")


loss_and_grad = nn.value_and_grad(model, loss_fn)
for epoch in range(EPOCHS):
    losses = []
    for idx in rng.permutation(len(x_train)).reshape(-1, BATCH):
        loss, grads = loss_and_grad(model, mx.array(x_train[idx]), mx.array(y_train[idx]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    acc = mx.mean(mx.argmax(model(x_val), axis=1) == y_val).item()
    print(f"epoch {epoch:2d} lr {optimizer.learning_rate.item():.5f} loss {np.mean(losses):.4f} val acc {acc:.4f}")
