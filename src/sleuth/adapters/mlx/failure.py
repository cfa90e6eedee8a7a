"""What an exception of MLX in forward, loss or backward really says."""

import os
import re
from collections.abc import Callable
from types import TracebackType

import mlx.nn as nn

from sleuth.adapters.mlx.checkpoint import read_misfit
from sleuth.adapters.mlx.model_parts import modules
from sleuth.core.observation import Failure, Observation
from sleuth.core.runtime.place import innermost, location_of

# The innermost of these files in a traceback tells what was going on.
PHASES = (
    ("mlx/nn/losses.py", "loss"),
    ("mlx/optimizers/", "step"),
    ("mlx/nn/layers/", "forward"),
    ("mlx/nn/utils.py", "forward"),
)

Told = tuple[str, str | None, str | None, str | None]  # kind, expected, got, advice


def explain(error: BaseException, phase: str, model: nn.Module | None, *, ours: bool = True) -> Failure:
    """`ours`: it was we who called the user's code."""
    kind, expected, got, advice = _tell(error)
    trace = error.__traceback__
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=str(error),
        kind=kind,
        layer=layer_of(trace, model),
        expected=expected,
        got=got,
        advice=advice,
        location=location_of(trace) if ours else innermost(trace),
    )


def crash(error: BaseException, model: nn.Module | None) -> list[Observation]:
    """What ended the user's own code, where it is something that MLX says."""
    misfit = read_misfit(error)
    if misfit is not None:
        return [misfit]
    told = explain(error, _phase(error.__traceback__), model, ours=False)
    return [] if told.kind == "other" else [told]


def _phase(trace: TracebackType | None) -> str:
    found = "script"
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename.replace(os.sep, "/")
        found = next((phase for part, phase in PHASES if part in file), found)
        trace = trace.tb_next
    return found


def layer_of(trace: TracebackType | None, model: nn.Module | None) -> str | None:
    """The innermost layer of the model whose method was running."""
    names = {} if model is None else {id(module): path for path, module in modules(model)}
    found = None
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        found = names.get(id(owner), found) if isinstance(owner, nn.Module) else found
        trace = trace.tb_next
    return found or None


def _tell(error: BaseException) -> Told:
    for pattern, tell in PATTERNS:
        found = re.search(pattern, str(error))
        if found:
            return tell(found)
    return "other", None, None, None


def _product(found: re.Match[str]) -> Told:
    got, wants = found["left"].split(",")[-1], found["right"].split(",")[-2 if "," in found["right"] else -1]
    advice = (
        f"make the layer {got} wide instead of {wants}, or reshape the input so that its last axis is {wants} long: "
        "x.reshape(x.shape[0], -1)"
    )
    return "shape", f"{wants} features", f"an array of shape ({found['left']})", advice


def _broadcast(found: re.Match[str]) -> Told:
    one, other = f"({found['one']})", f"({found['other']})"
    return "shape", f"shapes that fit {one}", other, f"bring both sides to one shape: one is {one}, the other {other}"


def _reshape(found: re.Match[str]) -> Told:
    advice = "compute the shape from the input and keep the batch axis: x.reshape(x.shape[0], -1)"
    return "shape", f"as many values as shape ({found['shape']}) holds", f"{found['size']} values", advice


def _channels(found: re.Match[str]) -> Told:
    wants = found["weight"].split(",")[-1]
    advice = "MLX wants the channels last: x.transpose(0, 2, 3, 1), or make the layer for as many channels as there are"
    return "shape", f"{wants} channels on the last axis", f"an array of shape ({found['input']})", advice


def _sides(found: re.Match[str]) -> Told:
    one, other = f"({found['one']})", f"({found['other']})"
    return "shape", f"a target for an output of shape {other}", f"a target of shape {one}", "bring the target to that shape"


def _sides_swapped(found: re.Match[str]) -> Told:
    one, other = f"({found['one']})", f"({found['other']})"
    return "shape", f"a target of shape {one}", f"shape {other}", "bring both to one shape: output.squeeze(-1), or y[:, None]"


def _indices(found: re.Match[str]) -> Told:
    return "dtype", "whole numbers", "an array of another type", "convert the indices: y.astype(mx.int32)"


def _range(found: re.Match[str]) -> Told:
    size, what = int(found["size"]), found["what"]
    return "index", f"indices 0 to {size - 1}", f"index {found['index']}", f"make as many {what} as there are classes or tokens"


def _foreign(found: re.Match[str]) -> Told:
    return "type", "an mlx array", f"a {found['kind']}", "make it an array of MLX first: mx.array(x)"


def _norm(found: re.Match[str]) -> Told:
    return "shape", f"{found['size']} features", "another number of them", "make the layer as wide as its input's last axis"


def _not_one(found: re.Match[str]) -> Told:
    return "value", "one number", f"an array of shape ({found['shape']})", "average the loss over the batch: loss.mean()"


# Read off MLX 0.32.
PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], Told]], ...] = (
    (r"first input with shape \((?P<left>[^)]*)\) must match .* second input with shape \((?P<right>[^)]*)\)", _product),
    (r"Shapes \((?P<one>[^)]*)\) and \((?P<other>[^)]*)\) cannot be broadcast", _broadcast),
    (r"Cannot reshape array of size (?P<size>\d+) into shape \((?P<shape>[^)]*)\)", _reshape),
    (r"\[conv\] .* input: \((?P<input>[^)]*)\) and weight: \((?P<weight>[^)]*)\)", _channels),
    (r"Targets shape \((?P<one>[^)]*)\) does not match logits shape \((?P<other>[^)]*)\)", _sides),
    (r"(?:Predictions|Inputs) shape \((?P<one>[^)]*)\) does not match targets shape \((?P<other>[^)]*)\)", _sides_swapped),
    (r"index (?P<index>-?\d+) is out of bounds for \w+ \w+ of (?P<size>\d+) (?P<what>\w+)", _range),
    (r"Indices must be integral|Cannot gather with indices type", _indices),
    (r"incompatible function arguments[\s\S]*Invoked with types:.*\b(?P<kind>ndarray|Tensor|list)\b", _foreign),
    (r"weight must have the same size as the last dimension of x but has (?P<size>\d+) elements", _norm),
    (r"Output shape \((?P<shape>[^)]*)\) does not match cotangent shape \(\)", _not_one),
)
