import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)
mx.random.seed(0)


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:])]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nn.relu(layer(x))
        return self.layers[-1](x)


def batches(x, y, size, seed=0):
    order = np.random.default_rng(seed).permutation(len(x))
    for i in range(0, len(x) - size + 1, size):
        idx = mx.array(order[i : i + size])
        yield x[idx], y[idx]


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


data = load_digits()
order = np.random.default_rng(1).permutation(len(data.target))
images = mx.array((data.data[order] / 16.0).astype(np.float32))
labels = mx.array(data.target[order].astype(np.int32))
x_train, y_train = images[:1400], labels[:1400]
x_test, y_test = images[1400:], labels[1400:]

model = MLP([64, 64, 32, 10])
optimizer = optim.Adam(learning_rate=2e-3)
loss_and_grad = nn.value_and_grad(model, loss_fn)
mx.eval(model.parameters())

STEPS = 500
for step in range(1, STEPS + 1):
    xb, yb = next(batches(x_train, y_train, 40))
    loss, grads = loss_and_grad(model, xb, yb)
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state, loss)
    if step % 50 == 0:
        acc = mx.mean(mx.argmax(model(x_test), axis=1) == y_test)
        print(f"step {step:4d}  loss {loss.item():.4f}  test accuracy {acc.item():.3f}")
