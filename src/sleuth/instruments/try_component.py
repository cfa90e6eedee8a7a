"""One part of a model by itself: does it give the shape that is expected, also for batches of 0, 1 and many samples?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sleuth.core.contract.inspection import Door
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Failure
from sleuth.core.runtime.tree import leaves, map_arrays, taken
from sleuth.instruments.given import Given
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result, new_figure
from sleuth.instruments.trace_view import doors, told

LARGE = 256


@dataclass(frozen=True)
class Attempt:
    batch: int | None  # samples; None: as given
    edge: str  # "as given", "empty", "one sample", "large"
    outputs: tuple[Door, ...]
    expected: tuple[int | None, ...] | None
    failure: Failure | None = None
    remark: str = ""  # why it is not as expected

    @property
    def ok(self) -> bool:
        return self.failure is None and not self.remark


@dataclass(frozen=True)
class TriedComponent(Result):
    name: str
    attempts: tuple[Attempt, ...]
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return all(a.ok for a in self.attempts)

    def to_dict(self) -> dict[str, Any]:
        return {**plain(self), "ok": self.ok, "attempts": [{**plain(a), "ok": a.ok} for a in self.attempts]}

    def plot(self) -> Any:
        figure = new_figure(7, 0.4 * len(self.attempts) + 0.8)
        axes = figure.add_subplot()
        axes.axis("off")
        for place, attempt in enumerate(self.attempts):
            color = "#228833" if attempt.ok else "#cc3311"
            axes.text(0, 1 - (place + 0.5) / len(self.attempts), _line(attempt), color=color, family="monospace", va="center")
        axes.set_title(self.name, loc="left")
        return figure

    def __str__(self) -> str:
        lines = [self.name]
        for attempt in self.attempts:
            lines.append(f"  {_line(attempt)}")
            lines += [f"    {line}" for line in (told(attempt.failure) if attempt.failure is not None else ())]
        return "\n".join((*lines, *self.remarks))


def _line(attempt: Attempt) -> str:
    batch = "" if attempt.batch is None else f" ({attempt.batch})"
    got = "raises" if attempt.failure is not None else doors(attempt.outputs)
    return f"{'✓' if attempt.ok else '✗'} {attempt.edge + batch:18} {got}{f'   {attempt.remark}' if attempt.remark else ''}"


def try_component(
    module: Any,
    inputs: Any,
    *,
    expected_shape: Sequence[int | None] | None = None,
    edges: bool = True,
    large: int = LARGE,
    dtype: str | None = None,
) -> TriedComponent:
    """Call one part as it stands, then with no sample, one sample and `large` samples; a copy of it is called.

    `inputs` are arrays or shapes, as for `sleuth.summary`, with samples along the first axis. `expected_shape` is that of the
    (first) output; None in it means any size. Its first side follows the batch where the input's does.
    """
    given = Given(module, inputs, dtype)
    arrays = given.required()
    size = _batch(arrays, given)
    expected = None if expected_shape is None else tuple(expected_shape)
    attempts = [_try(given, arrays, None, "as given", expected)]
    remarks: list[str] = []
    if edges and attempts[0].failure is None:
        if size is None:
            remarks.append("no edge batches were tried: the inputs do not share their first axis")
        else:
            first = attempts[0].outputs[0].shape if attempts[0].outputs else None
            if expected is None and first and first[0] == size:
                expected = (size, *(None for _ in first[1:]))
            for count, edge in ((0, "empty"), (1, "one sample"), (large, "large")):
                if count != size:
                    resized = map_arrays(arrays, partial(_resized, count=count, given=given), given.adapter.is_array)
                    attempts.append(_try(given, resized, count, edge, _with_batch(expected, size, count)))
    return TriedComponent(given.name, tuple(attempts), tuple(remarks))


def _try(given: Given, inputs: Any, batch: int | None, edge: str, expected: tuple[int | None, ...] | None) -> Attempt:
    passed = given.inspects.passage(given.model, inputs, as_is=True)
    outputs = passed.visits[0].outputs if passed.visits and passed.failure is None else ()
    remark = "" if passed.failure is not None else _remark(outputs, expected)
    return Attempt(batch, edge, outputs, expected, passed.failure, remark)


def _remark(outputs: tuple[Door, ...], expected: tuple[int | None, ...] | None) -> str:
    if not outputs or outputs[0].shape is None:
        return "it returns no array"
    shape = outputs[0].shape
    if expected is None or (len(shape) == len(expected) and all(e in (None, s) for s, e in zip(shape, expected, strict=True))):
        return ""
    wanted = ", ".join("any" if e is None else str(e) for e in expected)
    return f"expected ({wanted})"


def _batch(arrays: Any, given: Given) -> int | None:
    found = [a for _, a in leaves(arrays, given.adapter.is_array)]
    if not found:
        raise UnusableInput("there is no array among the inputs.")
    sizes = {a.shape[0] if a.ndim else None for a in found}
    return sizes.pop() if len(sizes) == 1 else None


def _resized(array: Any, count: int, given: Given) -> Any:
    """The same samples over and over, or the first of them."""
    if array.shape[0]:
        return taken(array, np.arange(count) % array.shape[0])
    return given.adapter.like(np.zeros((count, *array.shape[1:])), array)


def _with_batch(expected: tuple[int | None, ...] | None, size: int, count: int) -> tuple[int | None, ...] | None:
    if expected is None:
        return None
    return (count, *expected[1:]) if expected and expected[0] == size else expected
