"""Digits on the laptop. Usage: digits_laptop.py [--hidden N] [--epochs N]"""
import argparse
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--hidden", type=int, default=2, help="units of the hidden layer")
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--batch", type=int, default=27)
    p.add_argument("--rate", type=float, default=1.5e-3)
    p.add_argument("--seed", type=int, default=18)
    return p.parse_args()


class Reader(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = nn.Linear(64, hidden)
        self.out = nn.Linear(hidden, 10)

    def __call__(self, x):
        return self.out(mx.tanh(self.hidden(x)))


def load(seed):
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = x[order], y[order]
    x = (x / 16.0 - 0.305) / 0.376
    return x.astype(np.float32), y.astype(np.int32)


def run(o):
    mx.random.seed(o.seed)
    rng = np.random.default_rng(o.seed)
    x, y = load(o.seed)
    x_train, y_train, x_val, y_val = x[:1350], y[:1350], mx.array(x[1350:]), mx.array(y[1350:])
    model = Reader(o.hidden)
    optimizer = optim.AdamW(learning_rate=o.rate, weight_decay=0.05)
    mx.eval(model.parameters())

    def loss_fn(model, xb, yb):
        return nn.losses.cross_entropy(model(xb), yb, reduction="mean")

    value_and_grad = nn.value_and_grad(model, loss_fn)
    state = [model.state, optimizer.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(xb, yb):
        loss, grads = value_and_grad(model, xb, yb)
        optimizer.update(model, grads)
        return loss

    for epoch in range(1, o.epochs + 1):
        losses = []
        for rows in rng.permutation(1350).reshape(-1, o.batch):
            loss = step(mx.array(x_train[rows]), mx.array(y_train[rows]))
            mx.eval(state)
            losses.append(loss.item())
        if epoch % 10 == 0:
            logits = model(x_val)
            val = nn.losses.cross_entropy(logits, y_val, reduction="mean").item()
            acc = mx.mean(mx.argmax(logits, -1) == y_val).item()
            print(f"{epoch:3d}/{o.epochs}  loss {np.mean(losses):.4f}  val {val:.4f}  acc {acc:.3f}")


run(options())
