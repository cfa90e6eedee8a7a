"""Which parameters the loss of a training never reached, at any step that was looked at."""

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import is_made_of_nothing, native
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.operations import Operations
from sleuth.adapters.mlx.tracing import cuts_of
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.adapters.mlx.watching.recorder import NotingRecorder
from sleuth.core.contract.kept import Kept
from sleuth.core.subject import call_model
from sleuth.core.trial import Connection, Cut

# Fewer may be a matter of turns: another part of the model at every second step.
LEAST_LOOKS = 4
# To draw the graph of a gradient that is not of nothing takes its time.
MOST_DRAWN = 16


class UnreachedParameters(NotingRecorder):
    def __init__(self, kept: Callable[[], Kept | None] = lambda: None) -> None:
        """`kept`: where the step can be done again, the lines that cut the way are looked for."""
        super().__init__()
        self._kept = kept
        self._suspects: set[str] | None = None  # None: nothing was seen yet
        self._asked = 0  # looks at which the suspects' graphs were drawn
        self._called: set[str] = set()
        self._parameters = 0

    def gradients(self, raw: dict[str, mx.array]) -> None:
        """While they are uncomputed."""
        if self._suspects:
            drawn = sorted(self._suspects)[:MOST_DRAWN]
            self._suspects = {path for path in drawn if path in raw and is_made_of_nothing(raw[path])}
            self._asked += 1

    def looked(self, look: Look, copy: LookCopy) -> None:
        if copy.raw:
            zero = {path for path, gradient in copy.raw.items() if not np.any(gradient)}
            self._suspects = zero if self._suspects is None else self._suspects & zero
            self._parameters = len(copy.raw)
            for hearing in look.hearings:
                self._called |= hearing.called

    def ended(self, model: nn.Module, optimiser: Optimizer | None) -> None:
        if not self._suspects or self._asked < LEAST_LOOKS:
            return
        parts = [(path, module) for path, module in modules(model) if path and family_of(module) != "container"]
        unused = [path for path, _ in parts if path not in self._called]
        order = [path for path in (e.path for e in parameters(model)) if path in self._suspects]
        self.notes.append(Connection(self._parameters, tuple(order), _cuts(self._kept(), order), tuple(unused)))


def _cuts(kept: Kept | None, order: list[str]) -> tuple[Cut, ...]:
    if kept is None or not kept.at_start or kept.forbidden or kept.subject.loss is None:
        return ()
    model, loss, batch = kept.subject.model, kept.subject.loss, native(kept.train[0].parts)
    notes = Operations(model)
    try:
        with state.as_before([module for _, module in modules(model)]), notes.listening():
            loss(call_model(model, model.__call__, batch.inputs), batch.target)
    except Exception:  # the user's own code: then there is no line
        return ()
    return cuts_of(model, notes.heard, order)
