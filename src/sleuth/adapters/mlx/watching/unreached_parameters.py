"""Which parameters the loss of a training never reached, at any step that was looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import native, values
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.operations import Operations
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.adapters.mlx.tracing import cuts_of
from sleuth.adapters.mlx.watching.losses import is_made_of_nothing
from sleuth.core.contract.kept import Kept
from sleuth.core.subject import call_model
from sleuth.core.trial import Connection, Cut

# Fewer may be a matter of turns: another part of the model at every second step.
LEAST_LOOKS = 4
# To draw the graph of a gradient that is not of nothing takes its time.
MOST_DRAWN = 16


@dataclass
class Reach:
    suspects: set[str] | None = None  # None: nothing was seen yet
    asked: int = 0  # looks at which the suspects' graphs were drawn
    called: set[str] = field(default_factory=set)
    parameters: int = 0

    def before(self, gradients: Mapping[str, mx.array]) -> None:
        """While they are uncomputed."""
        if self.suspects:
            drawn = sorted(self.suspects)[:MOST_DRAWN]
            self.suspects = {path for path in drawn if path in gradients and is_made_of_nothing(gradients[path])}
            self.asked += 1

    def after(self, gradients: Mapping[str, mx.array], hearings: list[Hearing]) -> None:
        """When they are computed."""
        zero = {path for path, gradient in gradients.items() if not np.any(values(gradient))}
        self.suspects = zero if self.suspects is None else self.suspects & zero
        self.parameters = len(gradients)
        for hearing in hearings:
            self.called |= hearing.called

    def connection(self, model: nn.Module, kept: Kept | None) -> Connection | None:
        """`kept`: where the step can be done again, the lines that cut the way are looked for."""
        if not self.suspects or self.asked < LEAST_LOOKS:
            return None
        parts = [(path, module) for path, module in modules(model) if path and family_of(module) != "container"]
        unused = [path for path, _ in parts if path not in self.called]
        order = [path for path in (e.path for e in parameters(model)) if path in self.suspects]
        return Connection(self.parameters, tuple(order), _cuts(kept, order), tuple(unused))


def _cuts(kept: Kept | None, order: list[str]) -> tuple[Cut, ...]:
    if kept is None or not kept.at_start or kept.forbidden or kept.subject.loss is None:
        return ()
    model, loss, batch = kept.subject.model, kept.subject.loss, native(kept.train[0].parts)
    notes = Operations(model)
    before = state.snapshot([module for _, module in modules(model)], None)
    try:
        with notes.listening():
            loss(call_model(model, model.__call__, batch.inputs), batch.target)
    except Exception:  # the user's own code: then there is no line
        return ()
    finally:
        state.restore(before)
    return cuts_of(model, notes.heard, order)
