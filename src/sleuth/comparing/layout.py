"""How a unit's tensors lie: every framework's own way into a common one, and back.

Common is: (out, in) for linear weights, (out, in, *kernel) for convolutions, gates stacked along the first axis.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sleuth.comparing import gates
from sleuth.comparing.unit import Unit

Tensors = Mapping[str, np.ndarray]
# `kernel` is the word of frameworks that put outputs last; a bare matrix in hand-written code is used as x @ W.
OUTPUTS_FIRST = ("weight",)
LINEAR, CONVOLUTION = ("oi", "io"), ("oi*", "*io", "o*i")


@dataclass(frozen=True)
class Layout:
    """How the weight lies: o for outputs, i for inputs, * for the kernel, in their order."""

    way: str = ""  # "": as it is
    fitting: tuple[str, ...] = ()  # every way that its shape allows, the likeliest first
    columns: np.ndarray | None = None  # of the common form's inputs: where each stands in this one's

    @property
    def certain(self) -> bool:
        return len(self.fitting) < 2

    def turned(self) -> "Layout":
        """The next way that its shape allows."""
        if self.certain:
            return self
        return replace(self, way=self.fitting[(self.fitting.index(self.way) + 1) % len(self.fitting)])

    def axes(self, dimensions: int) -> tuple[int, ...]:
        """Where each axis of the common form stands."""
        kernel = dimensions - 2
        places = [letter for part in self.way for letter in ([part] if part != "*" else [f"k{i}" for i in range(kernel)])]
        return tuple(places.index(letter) for letter in ("o", "i", *(f"k{i}" for i in range(kernel))))


def to_common(unit: Unit, layout: Layout, tensors: Tensors) -> dict[str, np.ndarray]:
    if unit.family == "recurrent":
        return gates.to_common(unit, tensors)
    found = dict(tensors)
    if layout.way and "weight" in found:
        found["weight"] = found["weight"].transpose(layout.axes(found["weight"].ndim))
    if layout.columns is not None and "weight" in found:
        found["weight"] = found["weight"][:, layout.columns]
    return found


def from_common(unit: Unit, layout: Layout, tensors: Tensors) -> dict[str, np.ndarray]:
    """Only the roles that the unit has."""
    if unit.family == "recurrent":
        return gates.from_common(unit, tensors)
    found = {role: values for role, values in tensors.items() if role in unit.tensors}
    if layout.columns is not None and "weight" in found:
        found["weight"] = found["weight"][:, np.argsort(layout.columns)]
    if layout.way and "weight" in found:
        found["weight"] = found["weight"].transpose(np.argsort(layout.axes(found["weight"].ndim)))
    return {role: values.reshape(unit.shapes[role]) for role, values in found.items()}


def layouts(pairs: Sequence[tuple[Unit, Unit]], same_framework: bool) -> list[tuple[Layout, Layout]]:
    """Where a shape fits several ways, the other layers of that model decide, and else the parameter's name."""
    found = [_layouts(a, b, same_framework) for a, b in pairs]
    mine, yours = (_voted([layout[side] for layout in found]) for side in (0, 1))
    return list(zip(mine, yours, strict=True))


def _voted(found: list[Layout]) -> list[Layout]:
    voted = found
    for group in (LINEAR, CONVOLUTION):
        known = {layout.way for layout in found if layout.certain and layout.way in group}
        if len(known) == 1:
            (way,) = known
            voted = [replace(x, way=way, fitting=(way,)) if not x.certain and way in x.fitting else x for x in voted]
    return voted


def _layouts(a: Unit, b: Unit, same_framework: bool) -> tuple[Layout, Layout]:
    if "weight" not in a.shapes or "weight" not in b.shapes or "embedding" in (a.family, b.family):
        return Layout(), Layout()
    if same_framework and a.kind == b.kind and a.shapes["weight"] == b.shapes["weight"]:
        way = _ways(a)[0]
        return Layout(way, (way,)), Layout(way, (way,))
    if len(a.shapes["weight"]) != len(b.shapes["weight"]) or "Transpose" in a.kind + b.kind:
        return Layout(), Layout()
    return _layout(a, b), _layout(b, a)


def _ways(unit: Unit) -> tuple[str, ...]:
    ways = LINEAR if len(unit.shapes["weight"]) == 2 else CONVOLUTION
    first = [way for way in ways if way.startswith("o") == (unit.leaf("weight") in OUTPUTS_FIRST)]
    return (*first, *(way for way in ways if way not in first))


def _layout(unit: Unit, other: Unit) -> Layout:
    inputs, outputs = (unit.settings.get(key, other.settings.get(key)) for key in ("in", "out"))
    bias = unit.shapes.get("bias", other.shapes.get("bias", ()))
    if outputs is None and len(bias) == 1:
        outputs, inputs = bias[0], None
    fitting = tuple(way for way in _ways(unit) if _fits(unit, way, inputs, outputs))
    return Layout((fitting or _ways(unit))[0], fitting)


def _fits(unit: Unit, way: str, inputs: object, outputs: object) -> bool:
    """A grouped convolution holds only its group's inputs."""
    shape = unit.shapes["weight"]
    place = Layout(way).axes(len(shape))
    if isinstance(outputs, int) and shape[place[0]] != outputs:
        return False
    if not isinstance(inputs, int):
        return True
    return shape[place[1]] == inputs if len(shape) == 2 else inputs % max(shape[place[1]], 1) == 0
