"""Trainings of MLX."""

from itertools import pairwise

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

from benchmarks.watching.training import Training, looped


def training(widths: tuple[int, ...], batch: int) -> Training:
    mx.random.seed(0)
    rng = np.random.default_rng(0)
    layers: list[nn.Module] = []
    for one, other in pairwise(widths):
        layers += [nn.Linear(one, other), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimiser = optim.Adam(learning_rate=1e-3)

    def loss_of(model: nn.Module, x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    gradient = nn.value_and_grad(model, loss_of)
    x = mx.array(rng.normal(size=(batch, widths[0])).astype(np.float32))
    y = mx.array(rng.integers(0, widths[-1], batch))

    def step() -> None:
        loss, gradients = gradient(model, x, y)
        optimiser.update(model, gradients)
        mx.eval(loss, model.parameters(), optimiser.state)
        loss.item()

    return looped(model, optimiser, step)


TRAININGS = {
    "MLP 64-64-10, batch 32": lambda: training((64, 64, 10), 32),
    "MLP 784-512-256-10, batch 128": lambda: training((784, 512, 256, 10), 128),
}
