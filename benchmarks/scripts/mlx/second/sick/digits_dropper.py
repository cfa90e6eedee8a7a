import time

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)
mx.random.seed(99)


class DropNet(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.l1 = nn.Linear(64, 96)
        self.l2 = nn.Linear(96, 64)
        self.l3 = nn.Linear(64, 10)
        self.drop = nn.Dropout(p)

    def __call__(self, x):
        x = self.drop(nn.relu(self.l1(x)))
        x = self.drop(nn.relu(self.l2(x)))
        return self.l3(x)


def objective(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def evaluate(model, x, y):
    hits, loss = 0, 0.0
    for i in range(0, len(x), 100):
        xb, yb = mx.array(x[i : i + 100]), mx.array(y[i : i + 100])
        logits = model(xb)
        hits += mx.sum(mx.argmax(logits, axis=-1) == yb).item()
        loss += nn.losses.cross_entropy(logits, yb, reduction="sum").item()
    return loss / len(x), hits / len(x)


x, y = load_digits(return_X_y=True)
x = (x / 16.0).astype(np.float32)
rng = np.random.default_rng(99)
order = rng.permutation(len(x))
train, valid = order[:1400], order[1400:]

model = DropNet()
mx.eval(model.parameters())
opt = optim.Adam(learning_rate=3e-3)
vg = nn.value_and_grad(model, objective)
t0 = time.perf_counter()
for epoch in range(1, 16):
    model.train()
    rng.shuffle(train)
    total = 0.0
    for i in range(0, 1400, 50):
        b = train[i : i + 50]
        loss, grads = vg(model, mx.array(x[b]), mx.array(y[b]))
        opt.update(model, grads)
        mx.eval(model.parameters(), opt.state)
        total += loss.item()
    val_loss, val_acc = evaluate(model, x[valid], y[valid])
    print(f"epoch {epoch:2d} train {total / 28:.4f} valid {val_loss:.4f} acc {val_acc:.3f}")
print(f"took {time.perf_counter() - t0:.1f}s")
