"""The parts that sleuth's rules build trainings of, in Abacus."""

from itertools import islice, repeat
from typing import Any

import abacus
import numpy as np

from sleuth.testing import CannotBuild, Kit, Loop, Training

LOSSES = {"cross-entropy": abacus.cross_entropy, "mse": abacus.mse}
OPTIMISERS = {"sgd": abacus.SGD, "adam": abacus.Adam}


class AbacusKit(Kit):
    name = "abacus"

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> Any:
        return abacus.Linear(inputs, outputs, bias)

    def activation(self, name: str) -> Any:
        if name != "relu":
            raise CannotBuild(f"Abacus has no {name}")
        return abacus.ReLU()

    def layer(self, name: str, *args: Any, **options: Any) -> Any:
        raise CannotBuild(f"Abacus has no {name}")

    def sequential(self, *layers: Any) -> Any:
        return abacus.Sequential(*layers)

    def weights(self, layer: Any) -> np.ndarray:
        return layer.weight.data.T.copy()

    def set_weights(self, layer: Any, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        layer.weight.data[...] = weight.T
        if bias is not None:
            layer.bias.data[...] = bias

    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> Any:
        return abacus.Loader(x, y, batch_size, shuffle)

    def loss(self, name: str, **options: Any) -> Any:
        if name not in LOSSES or options:
            raise CannotBuild(f"Abacus has no {name}, or not with {options}")
        return LOSSES[name]

    def optimiser(self, model: Any, name: str = "adam", lr: float = 1e-3, **options: Any) -> Any:
        return OPTIMISERS[name](model.parameters(), lr=lr, **options)

    def loop(self, training: Training) -> Loop:
        subject = training.subject
        model, loss, optimiser = subject.model, subject.loss, subject.optimizer

        def run(w: object) -> None:
            for x, y in islice((batch for epoch in repeat(subject.train) for batch in epoch), training.steps):
                optimiser.zero_grad()
                loss(model(x), y).backward()
                optimiser.step()

        return Loop(model, [optimiser], run, training.options)
