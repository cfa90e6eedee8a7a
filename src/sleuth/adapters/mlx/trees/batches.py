"""The batches that a loss function of a tree is given: for their facts, as soon as it is known which part is what."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.reservoir import Reservoir
from sleuth.adapters.mlx.arrays import values
from sleuth.adapters.mlx.trees.roles import Roles
from sleuth.adapters.mlx.watching.batches import Draft, arrays_by_path, drafted
from sleuth.adapters.mlx.watching.pending_steps import LAG
from sleuth.core.observation import NotFinite
from sleuth.core.subject import Parts

# Only to tell what the data is like.
FIRST_STEPS = 24
MOST_WAITING_BYTES = 16 << 20
MOST_BYTES = 32 << 20


class TreeBatches:
    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self.roles: Roles | None = None
        self._waiting: list[Draft] = []
        self._bytes = 0
        self._settled: list[tuple[int, Parts]] = []
        self.reservoir: Reservoir[Draft] = Reservoir(MOST_BYTES)
        self._lately: deque[tuple[int, Any]] = deque(maxlen=LAG + 2)

    def add(self, step: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, looked: bool) -> None:
        self._lately.append((step, (args, dict(kwargs))))
        wanted = self.reservoir.wants_next if self._keeps else step < FIRST_STEPS
        if not (wanted or looked) or self._bytes >= MOST_WAITING_BYTES:
            return
        draft = drafted(step, args, kwargs)
        self._waiting.append(draft)
        self._bytes += draft.bytes
        place = self.reservoir.wants() if self._keeps else None
        if place is not None:
            self.reservoir.put(place, draft, draft.bytes)

    def settle(self) -> None:
        """Brings what waits into the host's memory."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        for draft in waiting if self.roles is not None else ():
            assert self.roles is not None
            known = dict(arrays_by_path(draft.args))
            inputs = tuple(known[path] for path in self.roles.inputs if path in known)
            if len(inputs) == len(self.roles.inputs):
                target = None if self.roles.target is None else known.get(self.roles.target)
                draft.settle(inputs[0] if len(inputs) == 1 else inputs, target, first=False)
                if draft.parts is not None:
                    self._settled.append((draft.step, draft.parts))

    def not_finite(self, step: int) -> Iterator[NotFinite]:
        """What was handed in so at this step, one of the last."""
        given = next((dict(arrays_by_path(given)) for at, given in self._lately if at == step), {})
        roles = self.roles or Roles((), None)
        for path in (*roles.inputs, roles.target):
            array = given.get(path or "none")
            if array is None:
                continue
            numbers = values(array)
            if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
                what = "target" if path == roles.target else "input"
                yield NotFinite(step, what, "", int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum()))

    def clear(self) -> None:
        self._lately.clear()

    def take(self) -> tuple[tuple[int, Parts], ...]:
        found, self._settled = tuple(self._settled), []
        return found
