"""Where the first NaN or Inf of a step is born: each operation of the forward pass, and the way back through it."""

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.arrays import dtype_name, evaluated
from sleuth.adapters.mlx.operations import Operation, Operations
from sleuth.core.observation import Origin

# They put Inf where somebody wants it: a mask.
FILLS = {"full", "where", "full_like", "__setitem__", "array", "put_along_axis", "triu", "tril", "create_additive_causal_mask"}


def born_forward(model: nn.Module, compute: Callable[[], mx.array], step: int) -> Origin | None:
    """None where all is finite, or where it was handed in."""
    notes = Operations(model)
    with notes.listening():
        value = compute()
    heard = [o for o in notes.heard if o.made and all(evaluated((*o.given, *o.made)))]
    if bool(mx.all(mx.isfinite(value)).item()):
        return None
    first = _first_nan(heard) or next((o for o in heard if _has(o.made, mx.isinf) and not _bad(o.given) and not _fills(o)), None)
    return None if first is None else _told(first, step, first.made, "forward")


def _first_nan(heard: Sequence[Operation]) -> Operation | None:
    found = next((o for o in heard if _has(o.made, mx.isnan) and not _has(o.given, mx.isnan)), None)
    if found is None:
        return None
    infinite = [array for array in found.given if _has([array], mx.isinf)]
    maker = next((o for array in infinite for o in heard if any(m is array for m in o.made)), None)
    while maker is not None and not _fills(maker) and _has(maker.given, mx.isinf):  # it was handed on
        bad = next(array for array in maker.given if _has([array], mx.isinf))
        before = next((o for o in heard if any(m is bad for m in o.made)), None)
        if before is None or before is maker:
            break
        maker = before
    return found if maker is None or _fills(maker) else maker


def born_backward(model: nn.Module, compute: Callable[[], mx.array], step: int) -> Origin | None:
    """The last operation that is handed a finite gradient and hands on one that is not."""
    gradients: dict[int, list[mx.array]] = {}
    kept: list[mx.array] = []  # an identity is not given twice while its array lives

    def passed(operation: Operation, output: Any) -> Any:
        if not isinstance(output, mx.array) or not mx.issubdtype(output.dtype, mx.floating):
            return output
        tapped = _tapped(output, gradients)
        kept.append(tapped)
        return tapped

    notes = Operations(model, passed=passed)
    start = model.trainable_parameters()
    with notes.listening():
        _, found = nn.value_and_grad(model, compute)()
    model.update(start)
    mx.eval(found, list(gradients.values()))
    for operation in reversed(notes.heard):
        above = [g for made in operation.made for g in gradients.get(id(made), ())]
        below = [g for given in operation.given for g in gradients.get(id(given), ())]
        if above and not _bad(above) and below and _bad(below):
            return _told(operation, step, below, "backward")
    return None


def _tapped(array: mx.array, gradients: dict[int, list[mx.array]]) -> mx.array:
    key: list[int] = []

    @mx.custom_function  # type: ignore[untyped-decorator]
    def tap(x: mx.array) -> mx.array:
        return mx.stop_gradient(x)

    @tap.vjp  # type: ignore[untyped-decorator]
    def heard(x: mx.array, cotangent: mx.array, output: mx.array) -> mx.array:
        gradients.setdefault(key[0], []).append(cotangent)
        return cotangent

    made: mx.array = tap(array)
    key.append(id(made))
    return made


def _told(operation: Operation, step: int, bad: Sequence[mx.array], direction: str) -> Origin:
    ranges = [(float(mx.min(a).item()), float(mx.max(a).item())) for a in operation.given if a.size and not _bad([a])]
    return Origin(
        step,
        operation.name,
        direction,
        operation.layer or None,
        tuple(ranges),
        operation.location,
        nans=sum(int(mx.sum(mx.isnan(a)).item()) for a in bad),
        infs=sum(int(mx.sum(mx.isinf(a)).item()) for a in bad),
        dtype=dtype_name(operation.made[0]) if operation.made else "",
        constants=operation.constants,
        outside=operation.outside,
    )


def _fills(operation: Operation) -> bool:
    return operation.name in FILLS or not operation.given


def _has(arrays: Sequence[mx.array], what: Callable[[mx.array], mx.array]) -> bool:
    return any(bool(mx.any(what(a)).item()) for a in arrays if a.size)


def _bad(arrays: Sequence[mx.array]) -> bool:
    return any(not bool(mx.all(mx.isfinite(a)).item()) for a in arrays if a.size)
