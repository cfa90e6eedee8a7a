"""Where is the hand of a three-joint arm? Angles in, place out."""
import argparse

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)


def arm(n, rng):
    angles = rng.uniform(-1.5, 1.5, (n, 3)).astype(np.float32)
    total = np.cumsum(angles, axis=1)
    lengths = np.array([1.0, 0.7, 0.4])
    hand = np.stack([(lengths * np.cos(total)).sum(1), (lengths * np.sin(total)).sum(1)], 1)
    return angles, hand.astype(np.float32)


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def __call__(self, x):
        return x + self.down(nn.gelu(self.up(self.norm(x))))


class ArmNet(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.inp = nn.Linear(3, dim)
        self.blocks = [Residual(dim) for _ in range(depth)]
        self.out = nn.Linear(dim, 2)

    def __call__(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def loss_fn(model, x, y):
    return nn.losses.mse_loss(model(x), y)


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1200)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--lr", type=float, default=2e-3)
args = parser.parse_args()

rng = np.random.default_rng(16)
mx.random.seed(16)
x_train, y_train = arm(4000, rng)
x_test, y_test = map(mx.array, arm(600, rng))
centre, scale = y_train.mean(0), y_train.std(0)
y_train, y_test = (y_train - centre) / scale, (y_test - mx.array(centre)) / mx.array(scale)

model = ArmNet(32, 2)
optimizer = optim.Adam(learning_rate=args.lr, betas=[0.999, 0.9])
grad_fn = nn.value_and_grad(model, loss_fn)
recent = []
for step in range(1, args.steps + 1):
    rows = rng.integers(0, len(x_train), args.batch)
    loss, grads = grad_fn(model, mx.array(x_train[rows]), mx.array(y_train[rows]))
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    recent.append(loss.item())
    if step % 150 == 0:
        print(f"step {step}: loss {np.mean(recent[-50:]):.4f}  test {loss_fn(model, x_test, y_test).item():.4f}")
