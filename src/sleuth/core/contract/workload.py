"""What a step costs: time by phase and by layer, memory by what holds it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Heard:
    """Of one value inside a model: a layer's output, or an operation's."""

    path: str  # its second call is path#2; part of a tuple or dict is path[0], path[hidden]
    kind: str  # the layer's class, or the operation
    activation: str  # relu, tanh, …; "" where it is none
    unit_axis: int  # along which units or channels stand


# (layer or operation, is it a layer without parts or an activation?) → is it to be heard?
Wanted = Callable[[str, bool], bool]
# Arrays are the framework's own and may change afterwards.
Hear = Callable[[Heard, Any], None]


@dataclass(frozen=True)
class Phases:
    """Seconds of one step."""

    data: float
    forward: float  # and the loss
    backward: float
    optimiser: float

    @property
    def total(self) -> float:
        return self.data + self.forward + self.backward + self.optimiser


@dataclass(frozen=True)
class LayerWork:
    """One layer's own part of a step: what the layers inside it do is theirs."""

    path: str  # "" for what the model does outside of its layers, and for the loss
    kind: str
    family: str
    forward: float  # seconds
    backward: float = 0.0
    flops: int = 0  # of the forward pass; 0: none that can be counted
    operations: int = 0  # calls into the framework, of the forward pass
    saved: int = 0  # bytes that it keeps for the backward pass
    calls: int = 1

    @property
    def seconds(self) -> float:
        return self.forward + self.backward


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of arrays. `activations` is what the forward pass keeps for the backward pass."""

    parameters: int
    buffers: int
    gradients: int
    optimiser: int
    activations: int
    batch: int
    peak: int | None  # during one step; None: not measured
    growth: float | None  # a step, once the first ones are over


@dataclass(frozen=True)
class Cost:
    steps: tuple[Phases, ...]
    layers: tuple[LayerWork, ...]
    memory: MemoryUse
    device: str
    fused: float | None = None  # seconds of a step in one program, where phases and layers were compiled apart
    notes: tuple[str, ...] = ()  # what a reader of these figures must know
