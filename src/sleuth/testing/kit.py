"""What a framework's tests supply so that every case can be built in it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sleuth.testing.trainings import Loop, Training


class CannotBuild(Exception):
    """This kit lacks a part that the case needs; the message is printed in the matrix."""


class Elsewhere(CannotBuild):
    """Nor can any other kit: the machine lacks something, such as an accelerator."""


class Kit(ABC):
    """Layers, data, losses and optimisers under the same names in every framework.

    Layers are initialised as the framework does by default, from a generator that the tests seed.
    """

    name: ClassVar[str]
    own_loader: ClassVar[bool] = False  # `loader` gives one of the framework's own, that an adapter may read by position
    absent: ClassVar[Mapping[str, str]] = {}  # illnesses that cannot be had in this framework, each with the reason

    def require(self, *names: str) -> None:
        """For cases that are written in one framework's own words: `kit.require("torch")`. The others have a twin of it."""
        if self.name not in names:
            raise CannotBuild(f"it is written for {', '.join(names)}, and {self.name} has no twin of it")

    @abstractmethod
    def linear(self, inputs: int, outputs: int, bias: bool = True) -> Any: ...

    @abstractmethod
    def activation(self, name: str) -> Any:
        """relu, sigmoid, tanh, gelu."""

    @abstractmethod
    def layer(self, name: str, *args: Any, **options: Any) -> Any:
        """Any other layer: conv2d(in, out, kernel), batchnorm(n), layernorm(n), dropout(p), embedding(n, d),
        flatten(), softmax(axis), log_softmax(axis), max_pool(kernel), reshape(*shape),
        offset(*shape): x + a learned array of zeros, waves(in, out, frequency): sines along fixed random directions,
        log(offset): log(x + offset), tanh_by_hand(right): with a backward of its own, right or wrong,
        mean(axis): averages over an axis, standardise(axis): zero mean and unit spread along it, with nothing to learn."""

    @abstractmethod
    def sequential(self, *layers: Any) -> Any: ...

    @abstractmethod
    def weights(self, layer: Any) -> np.ndarray:
        """A copy of the weight matrix of a layer, units first."""

    @abstractmethod
    def set_weights(self, layer: Any, weight: np.ndarray, bias: np.ndarray | None = None) -> None: ...

    @abstractmethod
    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> Any:
        """Batches of (inputs, target); dtypes are kept."""

    @abstractmethod
    def loss(self, name: str, **options: Any) -> Any:
        """cross-entropy, nll, bce, bce-logits, mse, l1."""

    @abstractmethod
    def optimiser(self, model: Any, name: str = "adam", lr: float = 1e-3, **options: Any) -> Any:
        """adam, sgd."""

    @abstractmethod
    def loop(self, training: Training) -> Loop:
        """The plainest loop that trains these parts, as a user of the framework writes it."""

    def mlp(self, *widths: int, activation: str = "relu") -> Any:
        """Linear layers with an activation between them."""
        layers: list[Any] = []
        for i, (a, b) in enumerate(pairwise(widths)):
            layers += [self.activation(activation)] if i else []
            layers.append(self.linear(a, b))
        return self.sequential(*layers)
