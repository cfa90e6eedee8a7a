"""Mixture density network: one x, several possible y."""
import argparse

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)


def inverse_wave(n, rng):
    """y is uniform and x a wave of it, so that one x may come from three y."""
    y = rng.uniform(-1, 1, n)
    x = y + 0.35 * np.sin(2 * np.pi * y) + rng.normal(0, 0.05, n)
    return (x / 0.6).astype(np.float32)[:, None], (y / 0.58).astype(np.float32)


class Mixture(nn.Module):
    def __init__(self, hidden, parts):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.weight, self.centre, self.spread = (nn.Linear(hidden, parts) for _ in range(3))
        # the parts start apart from each other
        self.centre.bias = mx.linspace(-1.5, 1.5, parts)

    def __call__(self, x):
        h = self.trunk(x)
        log_weight = self.weight(h) - mx.logsumexp(self.weight(h), axis=-1, keepdims=True)
        return log_weight, self.centre(h), mx.maximum(self.spread(h), -3.5)


def nll(model, x, y):
    log_weight, centre, log_spread = model(x)
    z = (y[:, None] - centre) * mx.exp(-log_spread)
    log_density = log_weight - 0.5 * mx.square(z) - log_spread - 0.5 * float(np.log(2 * np.pi))
    return -mx.mean(mx.logsumexp(log_density, axis=-1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--parts", type=int, default=5)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--batch", type=int, default=100)
    args = p.parse_args()
    mx.random.seed(38)
    rng = np.random.default_rng(38)
    x, y = inverse_wave(5000, rng)
    x_val, y_val = (mx.array(a) for a in inverse_wave(1500, rng))
    model = Mixture(args.hidden, args.parts)
    optimizer = optim.Adam(learning_rate=optim.cosine_decay(3e-3, args.epochs * len(x) // args.batch, 1e-4))
    step = nn.value_and_grad(model, nll)
    print(f"one normal distribution would give {0.5 * np.log(2 * np.pi * np.e * y.var()):.3f}")
    for epoch in range(1, args.epochs + 1):
        losses = []
        for rows in rng.permutation(len(x)).reshape(-1, args.batch):
            loss, grads = step(model, mx.array(x[rows]), mx.array(y[rows]))
            grads, _ = optim.clip_grad_norm(grads, 5.0)
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}  nll {np.mean(losses):+.4f}  held out {nll(model, x_val, y_val).item():+.4f}")


main()
