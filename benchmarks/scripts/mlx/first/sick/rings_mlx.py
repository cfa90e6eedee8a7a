import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def __call__(self, x):
        return nn.relu(self.fc(x))


class RingNet(nn.Module):
    def __init__(self, dim=8, depth=3, classes=4):
        super().__init__()
        self.inp = nn.Linear(2, dim)
        self._blocks = [Block(dim) for _ in range(depth)]
        self.out = nn.Linear(dim, classes)

    def __call__(self, x):
        x = self.inp(x)
        for block in self._blocks:
            x = block(x)
        return self.out(x)


def rings(n, rng):
    label = rng.integers(0, 4, n)
    radius = 0.5 * (label + 1) + 0.07 * rng.normal(size=n)
    angle = rng.uniform(0, 2 * np.pi, n)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return mx.array(points.astype(np.float32)), mx.array(label.astype(np.int32))


rng = np.random.default_rng(18)
mx.random.seed(18)
x_test, y_test = rings(1000, rng)
model = RingNet()
optimizer = optim.Adam(learning_rate=5e-3)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


loss_and_grad = nn.value_and_grad(model, loss_fn)
for step in range(1, 701):
    x, y = rings(64, rng)
    loss, grads = loss_and_grad(model, x, y)
    optimizer.update(model, grads)
    mx.eval(model.state, optimizer.state)
    if step % 100 == 0:
        acc = mx.mean(mx.argmax(model(x_test), axis=1) == y_test).item()
        print(f"step {step} loss {loss.item():.4f} test accuracy {acc:.3f}")
