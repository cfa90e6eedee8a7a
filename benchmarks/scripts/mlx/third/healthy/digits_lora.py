"""Low-rank adapters: the trained weights stay as they are, two thin matrices per layer learn the new task."""
import math

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)


class LoRALinear(nn.Module):
    def __init__(self, linear, rank, alpha=8.0):
        super().__init__()
        out_dims, in_dims = linear.weight.shape
        self.linear = linear
        self.scale = alpha / rank
        bound = 1 / math.sqrt(in_dims)
        self.lora_a = mx.random.uniform(low=-bound, high=bound, shape=(in_dims, rank))
        self.lora_b = mx.zeros((rank, out_dims))

    def __call__(self, x):
        return self.linear(x) + self.scale * ((x @ self.lora_a) @ self.lora_b)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 96)
        self.fc2 = nn.Linear(96, 64)
        self.out = nn.Linear(64, 10)

    def __call__(self, x):
        return self.out(nn.relu(self.fc2(nn.relu(self.fc1(x)))))


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def fit(model, optimizer, x, y, epochs, rng, x_test, y_test, title):
    grad_fn = nn.value_and_grad(model, loss_fn)
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        losses = []
        for i in range(0, len(x), 40):
            rows = order[i : i + 40]
            loss, grads = grad_fn(model, mx.array(x[rows]), mx.array(y[rows]))
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        if epoch % 4 == 3:
            right = mx.mean(model(mx.array(x_test)).argmax(-1) == mx.array(y_test)).item()
            print(f"{title} {epoch + 1}: loss {np.mean(losses):.4f} accuracy {right:.3f}")


mx.random.seed(5)
rng = np.random.default_rng(5)
digits = load_digits()
order = rng.permutation(len(digits.target))
images, y = (digits.images[order] / 16.0).astype(np.float32), digits.target[order].astype(np.int32)
plain, upside = images.reshape(-1, 64), images[:, ::-1].reshape(-1, 64).copy()

model = Net()
fit(model, optim.Adam(learning_rate=2e-3), plain[:1200], y[:1200], 12, rng, plain[1400:], y[1400:], "base")

model.freeze()
for name in ("fc1", "fc2", "out"):
    setattr(model, name, LoRALinear(getattr(model, name), rank=8))
trainable = sum(v.size for _, v in tree_flatten(model.trainable_parameters()))
print(f"{trainable} of {sum(v.size for _, v in tree_flatten(model.parameters()))} parameters learn")
fit(model, optim.Adam(learning_rate=3e-3), upside[:1200], y[:1200], 16, rng, upside[1400:], y[1400:], "adapt")
