"""The batches of a training as they pass by: at the door of the model, with the target that the loss is given.

Which part of a batch the target is, is read off the first step, which is written down (`tape.py`).
"""

from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import numpy as np

from sleuth.adapters.common.reservoir import Reservoir
from sleuth.adapters.mlx.arrays import as_mlx, values
from sleuth.adapters.mlx.watching.batches import Draft, arrays_by_path, drafted, inputs_of
from sleuth.adapters.mlx.watching.recomputed_loss import Reading, read
from sleuth.adapters.mlx.watching.tape import Tape
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Parts

MOST_BYTES = 32 << 20
# Of what waits to be brought into the host's memory.
MOST_WAITING_BYTES = 16 << 20
# Without an examination after the end, only to tell what the data is like.
FIRST_STEPS = 24


class SeenBatches:
    def __init__(self, *, keeps: bool) -> None:
        self.reservoir: Reservoir[Draft] = Reservoir(MOST_BYTES)
        self.reading: Reading | None = None
        self.called_once = True  # the model, for each loss
        self.fed_anew = True
        self.settled: list[tuple[int, Parts]] = []  # since they were last taken, for their facts
        self.tape: Tape | None = None
        self._keeps = keeps
        self._waiting: list[Draft] = []
        self._bytes = 0
        self._draft: Draft | None = None
        self._before: Any = None
        self.target_path: str | None = None  # of the target among the arguments
        self._made_of: dict[int, str] = {}  # arrays of the tape that the target is made of → their paths
        self._inputs: Any = None  # of a step that is compiled: the door of the model, with numbers of the tape

    def begin(self, step: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, looked: bool) -> None:
        wanted = self.reservoir.wants_next if self._keeps else step < FIRST_STEPS
        self._draft = None
        if (wanted or looked) and self._bytes < MOST_WAITING_BYTES:
            self._draft = drafted(step, args, kwargs)
            self._note_memory(args)

    def door(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is called for the loss."""
        if self._draft is not None:
            self._draft.calls += 1
            if self._draft.calls == 1:
                self._draft.door = inputs_of(args, kwargs)

    def end(self) -> None:
        draft, self._draft = self._draft, None
        if draft is None:
            return
        self.called_once &= draft.calls <= 1
        if draft.door is None and self._inputs is None:
            return
        self._waiting.append(draft)
        self._bytes += draft.bytes
        place = self.reservoir.wants() if self._keeps else None
        if place is not None:
            self.reservoir.put(place, draft, draft.bytes)

    def failed(self) -> None:
        self._draft = None

    def learn(self, tape: Tape, args: Any, value: float | None) -> None:
        """From one step: `args` are those of a draft, `value` its loss. None: the step was only read, to be compiled; what has
        no values is known by its shape and type."""
        compiled = value is None
        self.reading, self.tape = read(tape, value), tape
        known = dict(arrays_by_path(args))
        target = self.reading.target
        if target is not None:
            self.target_path = _path_of(tape.arrays[target], known, compiled)
            if self.target_path is None:
                found = {n: _path_of(tape.arrays[n], known, compiled) for n in tape.sources(target, set())}
                self._made_of = {n: path for n, path in found.items() if path is not None}
        if compiled:
            self._learn_door(tape, known)
        tape.forget({*self._made_of, *(() if target is None else (target,))}, compiled=compiled)

    def settle(self) -> None:
        """Brings what waits into the host's memory."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        for draft in waiting:
            draft.settle(self._given(draft), self._wanted(draft), first=draft in self.reservoir.items[:1])
            if draft.parts is not None:
                self.settled.append((draft.step, draft.parts))

    def take_settled(self) -> list[tuple[int, Parts]]:
        found, self.settled = self.settled, []
        return found

    def draft_args(self) -> Any:
        return None if self._draft is None else self._draft.args

    def draft_target(self) -> Any:
        return None if self._draft is None else self._wanted(self._draft)

    def first_target(self) -> Any:
        return as_mlx(self._wanted(self._waiting[0])) if self._waiting else None

    def close(self) -> None:
        self._draft, self._before = None, None

    def _given(self, draft: Draft) -> Any:
        if self._inputs is None:
            return draft.door
        known = dict(arrays_by_path(draft.args))
        return map_arrays(self._inputs, lambda place: known[place.path], lambda thing: isinstance(thing, _Place))

    def _wanted(self, draft: Draft) -> Any:
        known = dict(arrays_by_path(draft.args))
        if self.target_path is not None:
            return known.get(self.target_path)
        if not self._made_of or self.tape is None or self.reading is None or self.reading.target is None:
            return None
        if not all(path in known for path in self._made_of.values()):
            return None
        try:
            return self.tape.run({n: as_mlx(known[path]) for n, path in self._made_of.items()}, self.reading.target)
        except Exception:  # what was done to the first batch cannot be done to this one
            return None

    def _learn_door(self, tape: Tape, known: dict[str, Any]) -> None:
        paths = [_path_of(tape.arrays[n], known, True) for n in tape.given]
        if paths and all(path is not None for path in paths):
            places = tuple(_Place(path or "") for path in paths)
            self._inputs = places[0] if len(places) == 1 else places

    def _note_memory(self, args: tuple[Any, ...]) -> None:
        """Is a step given the very arrays of the one before? Then whoever wrote the loop may have no others."""
        first = next((a for _, a in arrays_by_path(args)), None)
        self.fed_anew &= first is None or first is not self._before
        self._before = first


class _Place:
    def __init__(self, path: str) -> None:
        self.path = path


def _path_of(array: mx.array, known: dict[str, Any], compiled: bool) -> str | None:
    """MLX hands arguments on as other objects."""
    alike = [path for path, a in known.items() if tuple(a.shape) == tuple(array.shape) and _type_of(a) == _type_of(array)]
    if compiled:
        return alike[0] if len(alike) == 1 else None
    equal_nan = mx.issubdtype(array.dtype, mx.floating)
    return next((p for p in alike if np.array_equal(values(known[p]), values(array), equal_nan=equal_nan)), None)


def _type_of(array: Any) -> str:
    return str(array.dtype).removeprefix("mlx.core.")
