"""What the training is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.core.location import Location
from sleuth.core.observation.base import Observation


@dataclass(frozen=True)
class Layer:
    """`kind` is the class as the user knows it, `family` a word that means the same in every framework.

    Families: linear, conv, recurrent, attention, embedding, batchnorm, norm, dropout, activation, softmax,
    pool, flatten, loss, container, other. Settings hold plain values: in, out, p, axis, activation, bias, …
    """

    path: str
    kind: str
    family: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    location: Location | None = None  # where the user made it
    late: bool = False  # made after the optimiser


@dataclass(frozen=True)
class Parameter:
    path: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    trainable: bool
    optimised: bool | None  # None: there is no optimiser to ask
    layer: str = ""
    family: str = "other"  # the layer's
    tied_to: str | None = None
    location: Location | None = None  # where the user gave it its first values, if that was seen

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Stray:
    """Something with parameters that the model holds where its framework does not look."""

    path: str
    holder: str  # "list", "dict", "tuple", "object"
    parameters: int
    location: Location | None = None


@dataclass(frozen=True)
class Architecture(Observation):
    """Layers in the order of definition; parameters likewise."""

    layers: tuple[Layer, ...]
    parameters: tuple[Parameter, ...]
    strays: tuple[Stray, ...] | None = None  # None: this framework was not searched for them
    frozen_at: Location | None = None  # the user's line that freezes parameters, where there is one such line
    unshaped: bool = False  # some parameters get their shape with the first batch only

    def has(self, *families: str) -> bool:
        return any(layer.family in families for layer in self.layers)


@dataclass(frozen=True)
class Drawing(Observation):
    """The model's graph as a picture. It is shown as a picture only: a run may come from anybody."""

    svg: str


@dataclass(frozen=True)
class Settings(Observation):
    framework: str
    loss: str | None
    optimiser: str | None
    lr: float | None
    optimiser_options: Mapping[str, Any] = field(default_factory=dict)
    parameter_dtype: str | None = None
    default_dtype: str | None = None  # in which the framework makes new floats; None: not known
    foreign_parameters: int = 0  # held by the optimiser and not part of the model
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)  # python, system, threads, device: as a person would say them
