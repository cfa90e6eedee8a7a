"""A model that a loss is meant to train, and whose optimiser was given the parameters of another one: two optimisers hold the
very same then, and nobody holds the model. Listened for only where two optimisers do."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import torch
from torch import nn

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.watching.call_places import calling_frame
from sleuth.adapters.torch.watching.finding_models import model_of, name_of, stepped_by
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.manual_updates import leaves_of
from sleuth.core.observation import Bystander

# By then every optimiser of a loop has been made.
FIRST_STEP = 8
STEPS = 8


class OrphanModels(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._twins: tuple[int, ...] = ()
        self._left = STEPS
        self._reached: dict[int, torch.Tensor] = {}  # since the last step, and nobody holds them
        self._before: dict[int, list[dict[int, torch.Tensor]]] = {}  # by the optimiser that stepped then
        self._notes: list[Note] = []

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        if not self._twins or not self._left:
            return
        held = stepped_by(o for o in self.loop.optimisers if o is not None)
        strange = {n: t for n, t in leaves_of(loss).items() if n not in held and isinstance(t, nn.Parameter)}
        self._reached |= strange

    def after_step(self, number: int) -> None:
        if not self._left or self.loop.steps < FIRST_STEP:
            return
        if not self._twins:
            self._twins = self._find_twins()
            self._left = STEPS if self._twins else 0
            return
        self._before.setdefault(number, []).append(self._reached)
        self._reached = {}
        self._left -= 1
        if not self._left:
            self._tell()

    def take(self) -> Sequence[Note]:
        notes, self._notes = self._notes, []
        return notes

    def _find_twins(self) -> tuple[int, ...]:
        held = {number: set(stepped_by([o])) for number, o in enumerate(self.loop.optimisers) if o is not None}
        return next(((a, b) for a, b in combinations(held, 2) if held[a] and held[a] == held[b]), ())

    def _tell(self) -> None:
        """Whose losses lead there, each time, while the other's never do?"""
        before, self._before = self._before, {}
        leading = [n for n in self._twins if before.get(n) and all(before[n])]
        others = [n for n in self._twins if n not in leading and before.get(n) and not any(before[n])]
        if len(leading) != 1 or len(others) != 1:
            return
        reached = before[leading[0]][0]
        model, _ = model_of(reached, None)
        own = [p for p in model.parameters() if p.requires_grad]
        if model.training and own and all(id(p) in reached for p in own):
            name = name_of(model, calling_frame())
            size = sum(p.numel() for p in own)
            self._notes.append(Bystander(self.loop.steps, name, len(own), size, leading[0], others[0]))
