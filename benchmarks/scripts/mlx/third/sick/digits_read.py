"""Digits read from one array per class, as they would lie in ten folders."""
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)


def read_folders(images, target, part):
    """All pictures of 0, then all of 1, and so on."""
    xs, ys = [], []
    for digit in range(10):
        own = images[target == digit]
        cut = int(0.8 * len(own))
        own = own[:cut] if part == "train" else own[cut:]
        xs.append(own)
        ys.append(np.full(len(own), digit))
    return np.concatenate(xs), np.concatenate(ys)


def stream(x, y, size):
    for start in range(0, len(x), size):
        yield mx.array(x[start : start + size]), mx.array(y[start : start + size])


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.out = nn.Linear(16 * 16, 10)

    def __call__(self, x):
        x = nn.relu(self.c2(nn.relu(self.c1(x))))
        return self.out(x.reshape(len(x), -1))


mx.random.seed(2)
data = load_digits()
images = (data.images[..., None] / 16.0).astype(np.float32)
x_train, y_train = read_folders(images, data.target, "train")
x_test, y_test = map(mx.array, read_folders(images, data.target, "test"))
model = ConvNet()
optimizer = optim.SGD(learning_rate=0.05, momentum=0.9)
state = [model.state, optimizer.state]


@partial(mx.compile, inputs=state, outputs=state)
def step(x, y):
    def objective(m):
        return nn.losses.cross_entropy(m(x), y, reduction="mean")

    loss, grads = nn.value_and_grad(model, objective)(model)
    optimizer.update(model, grads)
    return loss


for epoch in range(15):
    losses = []
    for x, y in stream(x_train, y_train, 32):
        losses.append(step(x, y).item())
        mx.eval(state)
    accuracy = mx.mean(model(x_test).argmax(1) == y_test).item()
    print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.3f} test accuracy {accuracy:.3f}")
