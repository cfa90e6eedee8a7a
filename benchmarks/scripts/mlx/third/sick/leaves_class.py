"""Six kinds of leaves from a dozen measurements of their outline."""
from dataclasses import dataclass

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)


@dataclass
class Leaves:
    x: np.ndarray
    kind: np.ndarray

    @classmethod
    def measure(cls, n, seed):
        kind = np.random.default_rng(seed).integers(0, 6, n)
        centres = np.random.default_rng(99).normal(0, 1.2, (6, 12))
        noise = np.random.default_rng(seed + 1).normal(0, 1.0, (n, 12))
        return cls((centres[kind] + noise).astype(np.float32), kind)

    def shuffle(self, seed):
        rng = np.random.default_rng(seed)
        rng.shuffle(self.x)
        rng.shuffle(self.kind)
        return self

    def batches(self, size):
        for i in range(0, len(self.x) - size + 1, size):
            yield mx.array(self.x[i : i + size]), mx.array(self.kind[i : i + size])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 6)

    def __call__(self, x):
        return self.head(self.body(x))


def loss_fn(model, x, kind):
    return mx.mean(nn.losses.cross_entropy(model(x), kind))


def main():
    mx.random.seed(0)
    train = Leaves.measure(2000, seed=0).shuffle(seed=5)
    test = Leaves.measure(500, seed=10)
    x_test, kind_test = mx.array(test.x), mx.array(test.kind)
    model, optimizer = Net(), optim.AdamW(learning_rate=1e-3, weight_decay=0.01)
    mx.eval(model.parameters())
    step = nn.value_and_grad(model, loss_fn)
    for epoch in range(15):
        total, n = 0.0, 0
        for x, kind in train.batches(40):
            loss, grads = step(model, x, kind)
            optimizer.update(model, grads)
            mx.eval(model.state, optimizer.state)
            total, n = total + loss.item(), n + 1
        right = mx.mean(model(x_test).argmax(axis=1) == kind_test).item()
        print(f"epoch {epoch + 1}: loss {total / n:.4f}, right in test {right:.3f}")


main()
