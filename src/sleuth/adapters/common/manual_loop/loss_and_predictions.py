"""What the loop's loss was given and what it said; and which classes the model named."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.adapters.common.loss_family import recognise
from sleuth.adapters.common.loss_values import broadcast_of
from sleuth.adapters.common.manual_loop.calling import positional, role_of
from sleuth.adapters.common.manual_loop.made_values import MadeValues, argument
from sleuth.core.location import Location
from sleuth.core.observation import LossCall, Predictions, Split

# Of larger outputs neither sums nor classes are worth their copy.
MOST_ENTRIES = 1 << 20


@dataclass(frozen=True)
class Judged:
    """One call of a loss. `live` is the very array that it was given, to be recognised; the rest are copies."""

    name: str
    live: np.ndarray
    output: np.ndarray
    target: np.ndarray | None
    value: float | None
    location: Location | None
    gradient: np.ndarray | None = None  # by the output, if the loss tells it


def judged(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    told: tuple[float | None, Any],
    location: Location | None,
) -> Judged | None:
    """`told`: the number that it said, and whatever else. None where what it was given cannot be told apart."""
    value, rest = told
    given = _by_role(function, args, options)
    arrays = [a for a in (*args, *options.values()) if isinstance(a, np.ndarray)]
    output = given.get("output", next((a for a in arrays if a.dtype.kind == "f"), None))
    target = given.get("target", next((a for a in arrays if a is not output), None))
    if output is None or output.size > MOST_ENTRIES:
        return None
    gradient = rest if isinstance(rest, np.ndarray) and rest.shape == output.shape else None
    kept = None if target is None else np.array(target)
    return Judged(name, output, np.array(output), kept, value, location, gradient)


def _by_role(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, np.ndarray]:
    found = dict(options)
    for parameter, value in zip(positional(function) or (), args, strict=False):
        found[parameter.name] = value
    roles = {role_of(p): found.get(p.name) for p in positional(function) or ()}
    return {role: value for role, value in roles.items() if isinstance(value, np.ndarray)}


def loss_calls(heard: list[Judged], value: float | None, made: MadeValues) -> Iterator[LossCall]:
    """The user's function is not asked again, as an examination would: only what it said counts."""
    for one in heard:
        family, reduction = "other", None
        if one.target is not None and one.value is not None:
            family, reduction = recognise(one.output, one.target, one.value)
        finite = one.value is not None and np.isfinite(one.value)
        sides = (("output", one.output, one.live), ("target", one.target, None))
        yield LossCall(
            name=one.name,
            family=family,
            value=value if value is not None and np.isfinite(value) else None,
            arguments=tuple(argument(role, array, made, live) for role, array, live in sides if array is not None),
            broadcast=None
            if one.target is None or family not in ("mse", "l1", "huber")
            else broadcast_of(one.output, one.target),
            reduction=reduction,
            location=one.location,
            broadcast_location=one.location,
            returned=one.value if finite else None,
        )


def predictions(heard: list[Judged], step: int) -> Iterator[Predictions]:
    for one in heard:
        right = _classes(one.output, one.target)
        if right is not None:
            named = one.output.argmax(-1)
            yield Predictions(
                step,
                Split.TRAIN,
                one.output.shape[-1],
                dict(Counter(named.tolist())),
                dict(Counter(right.tolist())),
                int((named == right).sum()),
                one.location,
            )


def _classes(output: np.ndarray, target: np.ndarray | None) -> np.ndarray | None:
    """One class a sample: an index, or a row with a single one."""
    if target is None or output.ndim != 2 or output.shape[1] < 2 or not np.isfinite(output).all():
        return None
    if target.dtype.kind in "iu" and target.size == len(output) and target.ndim <= 2:
        flat = target.reshape(-1).astype(np.int64)
        return flat if flat.size and flat.min() >= 0 and flat.max() < output.shape[1] else None
    rows = target.shape == output.shape and bool(((target == 0) | (target == 1)).all() and (target.sum(-1) == 1).all())
    return target.argmax(-1) if rows else None
