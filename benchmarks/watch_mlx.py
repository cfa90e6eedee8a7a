"""What watching costs in MLX: plain and watched steps of one training, taken in turns in one process.

Run: ./dev bench watch_mlx        (--steps N, --every N)
"""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

import sleuth
from sleuth.adapters.mlx.watching import patches

WARM_UP = 40


def training(widths: tuple[int, ...], batch: int) -> tuple[nn.Module, optim.Optimizer, Callable[[], None]]:
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

    return model, optimiser, step


def seconds(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def in_turns(widths: tuple[int, ...], batch: int, steps: int, every: int | None) -> tuple[list[float], list[float], int]:
    """During a plain step nobody listens; which of a pair goes first changes."""
    model, optimiser, step = training(widths, batch)
    plain: list[float] = []
    watched: list[float] = []
    with sleuth.watch(model, optimiser, directory=None, quiet=True, every=every) as w:
        listeners = list(patches.LISTENERS)
        for i in range(steps + WARM_UP):
            for which in (0, 1) if i % 2 else (1, 0):
                patches.LISTENERS[:] = listeners if which else []
                found = seconds(step)
                if i >= WARM_UP:
                    (watched if which else plain).append(found)
        patches.LISTENERS[:] = listeners
    return plain, watched, w.watching.looks


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--every", type=int, default=None)
    given = parser.parse_args()
    for widths, batch in (((64, 64, 10), 32), ((784, 512, 256, 10), 128)):
        plain, watched, looks = in_turns(widths, batch, given.steps, given.every)
        pairs = statistics.median(w / p for w, p in zip(watched, plain, strict=True))
        whole = sum(watched) / sum(plain)
        print(
            f"{'-'.join(map(str, widths))} batch {batch}: plain {1e3 * statistics.median(plain):.2f} ms, median of pairs "
            f"{pairs:.3f}, all steps {whole:.3f}, {looks} looks in {given.steps + WARM_UP} watched steps"
        )


if __name__ == "__main__":
    main()
