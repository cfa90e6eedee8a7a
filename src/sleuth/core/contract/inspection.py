"""What an adapter tells of a model that is only looked at: its parts, one forward pass, weights and maps to draw."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.core.observation import Failure


@dataclass(frozen=True)
class Part:
    """A module as it stands in the tree of the model: one that is used at two places is listed twice."""

    path: str  # "" for the model itself
    kind: str  # its class
    family: str  # as in core.observation.Layer
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # its own, not its children's: name → shape
    count: int = 0  # values in its own parameters that no part before it has
    trainable: int = 0  # of these
    same_as: str | None = None  # the path at which this very module was listed before
    tied: Mapping[str, str] = field(default_factory=dict)  # own parameter → the path of the same tensor, listed before
    lazy: bool = False  # a parameter of its own has no shape before the first call


@dataclass(frozen=True)
class Door:
    """An array that went into or came out of a layer. `what` says what it was where it was no array."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str = ""
    what: str = ""


@dataclass(frozen=True)
class Visit:
    """One call of a part in one forward pass; costs include what it called itself."""

    path: str
    parent: int | None  # the visit that it was called from
    inputs: tuple[Door, ...]
    outputs: tuple[Door, ...] = ()
    flops: int = 0
    seconds: float | None = None
    finished: bool = True


@dataclass(frozen=True)
class Passage:
    """One forward pass: its visits in the order of calls, and why it ended early if it did."""

    visits: tuple[Visit, ...]
    failure: Failure | None = None
    flops_counted: bool = True


@dataclass(frozen=True)
class Node:
    """An operation of a forward pass, with the call of a part that it ran in and the operations that fed it."""

    name: str
    family: str
    shape: tuple[int, ...]
    visit: int  # the innermost one
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Route:
    """Which operation feeds which, and in which calls of parts they ran."""

    nodes: tuple[Node, ...]
    passage: Passage
    outputs: tuple[int, ...]  # the nodes whose results the model returned


@dataclass(frozen=True)
class Kernels:
    """The weights of one convolution: (out, in, *kernel)."""

    path: str
    kind: str
    values: np.ndarray


@dataclass(frozen=True)
class Maps:
    """What one layer put out: (samples, channels, *positions)."""

    path: str
    kind: str
    values: np.ndarray


@dataclass(frozen=True)
class ClassActivation:
    """Where a layer speaks for a class: one map a sample, at the layer's own resolution and at that of the input."""

    path: str
    targets: tuple[int, ...]
    scores: tuple[float, ...]
    maps: np.ndarray  # (samples, height, width), not below 0
    enlarged: np.ndarray
    image: np.ndarray  # (samples, channels, height, width): the input that it was laid over


@dataclass(frozen=True)
class AttentionMap:
    """Who looked at whom in one call: (samples, heads, queries, keys)."""

    path: str
    kind: str  # how it was seen, such as scaled_dot_product_attention
    weights: np.ndarray
