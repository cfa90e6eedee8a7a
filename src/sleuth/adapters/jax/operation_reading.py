"""What one operation of a jaxpr does to data: its family, its settings, and where the axes of its input go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.adapters.jax.tape import Constant, Entry, Tape
from sleuth.adapters.jax.words import PRIMITIVES
from sleuth.core.reading.flow import Axes, reshaped

SAME = {"convert_element_type", "copy", "copy_p", "pvary", "stop_gradient", "reduce_precision", "optimization_barrier", "rev"}
SUMS = {"add", "sub", "add_any"}
SCALES = {*SUMS, "mul", "div", "neg"}
RANDOM = {"random_bits", "threefry2x32", "rng_bit_generator", "rng_uniform"}
POOLS = {"reduce_window_max": "pool", "reduce_window": "pool", "reduce_window_sum": "average"}


@dataclass(frozen=True)
class Reading:
    family: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes | None = None
    activation: str = ""


def read(tape: Tape, entry: Entry, data: list[int], weights: list[int]) -> Reading:
    """`data`: places among its inputs that depend on the batch; `weights`: those made of parameters alone."""
    shape = tape.shapes[entry.outputs[0]]
    if entry.name in ("dot_general", "conv_general_dilated"):
        return _product(tape, entry, data, weights)
    if entry.name in PRIMITIVES:
        return Reading("activation", activation=PRIMITIVES[entry.name])
    if entry.name == "max" and len(data) == 1 and _is_zero(entry.inputs[1 - data[0]]):
        return Reading("activation", activation="relu")
    if entry.name in SCALES:
        return _elementwise(tape, entry, data, shape)
    if entry.name in POOLS:
        family = POOLS[entry.name]
        return Reading(family, {}, unchanged(shape) if family == "average" else None)
    axes = followed(tape, entry, shape) if len(data) == 1 else None
    return Reading("other") if axes is None else Reading("average" if entry.name == "reduce_sum" else "reshape", {}, axes)


def unchanged(shape: tuple[int, ...]) -> Axes:
    return tuple((i,) for i in range(len(shape)))


def _is_zero(atom: Any) -> bool:
    return isinstance(atom, Constant) and np.ndim(atom.value) == 0 and float(atom.value) == 0.0


def _elementwise(tape: Tape, entry: Entry, data: list[int], shape: tuple[int, ...]) -> Reading:
    if len(data) > 1:
        return Reading("sum" if entry.name in SUMS else "product")
    source = entry.inputs[data[0]]
    if (entry.name == "div" and data[0] == 1) or not isinstance(source, int) or tape.shapes[source] != shape:
        return Reading("other")
    return Reading("scale", {}, unchanged(shape))


def followed(tape: Tape, entry: Entry, shape: tuple[int, ...]) -> Axes | None:
    """Where each axis goes; None for an operation that does more than move, cut out or average values."""
    source = entry.inputs[0]
    before = tape.shapes[source] if isinstance(source, int) else ()
    params = entry.equation.params
    if entry.name in SAME or entry.name in ("slice", "dynamic_slice", "pad"):
        return unchanged(shape) if len(before) == len(shape) else None
    if entry.name in ("reshape", "squeeze", "expand_dims"):
        return reshaped(before, shape)
    if entry.name == "transpose":
        return tuple((axis,) for axis in params["permutation"])
    if entry.name == "broadcast_in_dim":
        places = {out: axis for axis, out in enumerate(params["broadcast_dimensions"])}
        return tuple((places[i],) if i in places and before[places[i]] == n else () for i, n in enumerate(shape))
    if entry.name == "reduce_sum":
        return tuple((axis,) for axis in range(len(before)) if axis not in params["axes"])
    return None


def _product(tape: Tape, entry: Entry, data: list[int], weights: list[int]) -> Reading:
    if len(data) != 1:
        return Reading("product")
    if len(weights) != 1:
        return Reading("other")
    return _convolution(tape, entry) if entry.name == "conv_general_dilated" else _matrix(tape, entry, data[0], weights[0])


def _matrix(tape: Tape, entry: Entry, data: int, weight: int) -> Reading:
    contracted, batched = entry.equation.params["dimension_numbers"]
    shape = tape.shapes[entry.inputs[weight]]  # type: ignore[index]
    if len(shape) != 2 or batched[0] or len(contracted[0]) != 1:
        return Reading("other")
    inward = contracted[weight][0]
    after = len(tape.shapes[entry.outputs[0]]) - 1 if data == 0 else 0
    sides = {"in": shape[inward], "out": shape[1 - inward]}
    return Reading("linear", {**sides, "axis": contracted[data][0], "out_axis": after, "bias": False})


def _convolution(tape: Tape, entry: Entry) -> Reading:
    params = entry.equation.params
    numbers, shape = params["dimension_numbers"], tape.shapes[entry.inputs[1]]  # type: ignore[index]
    kernel, groups = numbers.rhs_spec, int(params["feature_group_count"])
    return Reading(
        "conv",
        {
            "in": shape[kernel[1]] * groups,
            "out": shape[kernel[0]],
            "axis": numbers.lhs_spec[1],
            "out_axis": numbers.out_spec[1],
            "bias": False,
            "kernel": tuple(shape[axis] for axis in kernel[2:]),
            "groups": groups,
            "stride": tuple(params["window_strides"]),
            "transposed": any(n > 1 for n in params["lhs_dilation"]),
        },
    )
