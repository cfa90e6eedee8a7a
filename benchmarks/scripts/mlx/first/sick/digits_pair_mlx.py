"""Two views of a digit (upper and lower half), each with its own encoder."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits


class HalfEncoder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.inp = nn.Linear(32, 48)
        self.norm = nn.LayerNorm(48)
        self.out = nn.Linear(48, dim)

    def __call__(self, x):
        return self.out(nn.silu(self.norm(self.inp(x))))


class TwoView(nn.Module):
    def __init__(self):
        super().__init__()
        self.upper = HalfEncoder()
        self.lower = HalfEncoder()
        self.head = nn.Linear(48, 10)

    def __call__(self, x):
        a = self.upper(x[:, :32])
        b = mx.stop_gradient(self.lower(x[:, 32:]))
        return self.head(nn.relu(mx.concatenate([a, b], axis=1)))


def loss_fn(model, x, y):
    return mx.mean(nn.losses.cross_entropy(model(x), y))


mx.random.seed(33)
rng = np.random.default_rng(33)
digits = load_digits()
order = rng.permutation(len(digits.data))
x = mx.array((digits.data[order] / 8 - 1).astype(np.float32))
y = mx.array(digits.target[order].astype(np.int32))
x_train, y_train, x_test, y_test = x[:1440], y[:1440], x[1440:], y[1440:]

model = TwoView()
opt = optim.AdamW(learning_rate=2e-3, weight_decay=0.0)
value_and_grad = nn.value_and_grad(model, loss_fn)
state = [model.state, opt.state]

for it in range(1, 401):
    idx = mx.array(rng.integers(0, 1440, 40))
    loss, grads = value_and_grad(model, x_train[idx], y_train[idx])
    opt.update(model, grads)
    mx.eval(state, loss)
    if it % 80 == 0:
        acc = (model(x_test).argmax(axis=1) == y_test).mean()
        print(f"it {it}: loss {loss.item():.4f}, test acc {acc.item():.4f}")
