"""bfloat16 forward and backward over float32 master weights; batches of 256."""
import argparse

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_map
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)


class Residual(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.inp = nn.Linear(64, width)
        self.body = [nn.Linear(width, width) for _ in range(layers)]
        self.norms = [nn.RMSNorm(width) for _ in range(layers)]
        self.out = nn.Linear(width, 10)

    def __call__(self, x):
        x = self.inp(x)
        for norm, lin in zip(self.norms, self.body):
            x = x + nn.silu(lin(norm(x)))
        return self.out(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--steps", type=int, default=240)
    ap.add_argument("--batch", type=int, default=256)
    args = ap.parse_args()
    mx.random.seed(3)
    rng = np.random.default_rng(3)
    x, y = load_digits(return_X_y=True)
    x = (x - x.mean()) / x.std()
    order = rng.permutation(len(x))
    x, y = x[order].astype(np.float32), y[order]
    xv, yv = mx.array(x[1400:]), mx.array(y[1400:])

    model = Residual(args.width, 2)
    optimizer = optim.Lion(learning_rate=3e-4, weight_decay=1e-2)
    master = model.parameters()
    optimizer.init(master)

    def loss_fn(weights, xb, yb):
        model.update(tree_map(lambda w: w.astype(mx.bfloat16), weights))
        logits = model(xb.astype(mx.bfloat16)).astype(mx.float32)
        return nn.losses.cross_entropy(logits, yb, label_smoothing=0.1, reduction="mean")

    grad_fn = mx.value_and_grad(loss_fn)
    for step in range(1, args.steps + 1):
        b = rng.choice(1400, args.batch, replace=False)
        loss, grads = grad_fn(master, mx.array(x[b]), mx.array(y[b]))
        master = optimizer.apply_gradients(grads, master)
        mx.eval(master, optimizer.state, loss)
        if step % 30 == 0:
            model.update(master)
            logits = model(xv)
            val = nn.losses.cross_entropy(logits, yv, reduction="mean").item()
            print(f"step {step} loss {loss.item():.4f} val {val:.4f} acc {mx.mean(logits.argmax(1) == yv).item():.3f}")


main()
