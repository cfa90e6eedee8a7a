"""Whether training shows the model the same again, and whether that answers without chance: then its loss is what it seems.

Augmentation gives other rows each time; dropout and noise draw random numbers while the model is called.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.core.observation import Recurrence
from sleuth.core.runtime.tree import leaves

# The next look waits for an eighth of the steps so far: some hundred looks in a million steps.
PATIENCE = 8
MOST_ROWS = 256
# Of each row: what changes a picture or a signal changes some of them.
MOST_VALUES = 64
MOST_KNOWN = 100_000
# Calls in a row without a graph, in training mode. The first of them is let go: a teacher or an actor makes but one a step.
MOST_CALLS = 4096


class Recurrences(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._next = 0
        self._known: set[int] = set()
        self._rows: torch.Tensor | None = None
        self._looked = False
        self._before: torch.Tensor | None = None
        self._notes: list[Note] = []
        self._asked = 0
        self._asked_for: list[torch.Tensor] = []

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if not torch.is_grad_enabled():
            if self.loop.model.training:
                self._ask(args, kwargs)
            return
        if self.loop.steps < self._next or self._rows is not None or self._looked:
            return
        self._rows = _rows(args, kwargs)
        self._before = torch.get_rng_state() if self._rows is not None and self._rows.is_cpu else None

    def output(self, output: Any) -> None:
        rows, before = self._rows, self._before
        self._rows = self._before = None
        if rows is not None:
            drew = None if before is None else not torch.equal(before, torch.get_rng_state())
            self._looked = True
            self._notes.append(partial(self._compare, self.loop.steps, rows, drew))

    def take(self) -> Sequence[Note]:
        if self._looked:
            self._next = self.loop.steps + max(1, self.loop.steps // PATIENCE)
            self._looked = False
        if self._asked:
            self._tell_asked()
        notes, self._notes = self._notes, []
        return notes

    def _ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._asked += 1
        if 1 < self._asked <= MOST_CALLS and (rows := _rows(args, kwargs, most=1)) is not None:
            self._asked_for.append(rows)

    def _tell_asked(self) -> None:
        if len(self._asked_for) > 1:
            self._notes.append(partial(_compare_calls, self.loop.steps, self._asked_for))
        self._asked, self._asked_for = 0, []

    def _compare(self, step: int, rows: torch.Tensor, drew: bool | None) -> Iterator[Recurrence]:
        """Off the training thread."""
        found = [hash(row.tobytes()) for row in to_numpy(rows)]
        again = sum(row in self._known for row in found)
        if len(self._known) < MOST_KNOWN:
            self._known.update(found)
        yield Recurrence(step, len(found), again, drew)


def _compare_calls(step: int, rows: list[torch.Tensor]) -> Iterator[Recurrence]:
    found = [hash(to_numpy(row).tobytes()) for row in rows]
    yield Recurrence(step, len(found), len(found) - len(set(found)), None, trained=False)


def _rows(args: tuple[Any, ...], kwargs: Mapping[str, Any], most: int = MOST_ROWS) -> torch.Tensor | None:
    """A small copy of the first thing that the model is given."""
    given = next((t for _, t in leaves((args, kwargs), is_tensor)), None)
    if given is None or given.dim() < 2 or given.is_meta or given.is_sparse or not given.numel():
        return None
    with torch.no_grad():
        return given.detach()[(slice(most), *_spread(given.shape[1:]))].clone()


def _spread(shape: Sequence[int]) -> list[slice]:
    """Evenly, the longest axes first."""
    steps = [1] * len(shape)
    left = -(-torch.Size(shape).numel() // MOST_VALUES)
    for axis in sorted(range(len(shape)), key=lambda a: -shape[a]):
        steps[axis] = max(1, min(left, shape[axis]))
        left = -(-left // steps[axis])
    return [slice(None, None, step) for step in steps]
