"""A watch as the rest of sleuth knows it: what the listener recorded becomes observations, off the training thread."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sleuth.adapters.jax.crash import crash
from sleuth.adapters.jax.optimising import rate_of, read, transformation
from sleuth.adapters.jax.watching.created_at import made_at, scheduled_at
from sleuth.adapters.jax.watching.hub import HUB
from sleuth.adapters.jax.watching.listener import JaxListener
from sleuth.adapters.jax.watching.optimiser_states import Restarts
from sleuth.adapters.jax.watching.rebuilt_training import kept
from sleuth.adapters.jax.watching.record import Record, observations
from sleuth.adapters.jax.watching.unused_results import Unused
from sleuth.adapters.listening.recorder import observations_of
from sleuth.adapters.listening.steps import not_finite_loss
from sleuth.adapters.listening.watching import ListeningWatch
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import (
    Absent,
    Batch,
    Call,
    Frame,
    LossCall,
    Modes,
    NotFinite,
    Observation,
    Optimiser,
    Precision,
    Predictions,
    Retention,
    Role,
    Step,
    Units,
)
from sleuth.core.observation.calls import CallKind
from sleuth.core.statistics import COLUMNS

INSIDE = "inside this step only loss, gradients, weights and updates could be listened to"
# Told where a step says nothing of it.
UNTOLD: dict[type[Observation] | Role, str] = {
    Role.ACTIVATION: INSIDE,
    Units: "no activation was met inside the step that could be listened to",
    LossCall: "no loss of optax was met inside the step: only those are known there",
    Predictions: "no loss of optax was met inside the step: only those are known there",
    Optimiser: "no state of an optimiser that counts its steps was met among the arguments of the step",
}
ABSENT: dict[type[Observation] | Role, str] = {
    Precision: INSIDE,
    Modes: "JAX passes the mode of a model as an argument, and that is not listened to",
    Batch: "data is read by the user's own code, and that is not listened to",
    Retention: "JAX keeps no graph between steps",
}
UNHEARD = (
    "no step was heard: what was compiled before the watch began is not listened to; wrap it, step = sleuth.watch_step(step), "
    "or use sleuth run"
)

BROKEN = [COLUMNS.index("nans"), COLUMNS.index("infs")]

os.register_at_fork(after_in_child=HUB.forget)


class JaxWatching(ListeningWatch):
    listener: JaxListener

    def __init__(
        self,
        model: Any,
        optimisers: Sequence[Any] = (),
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        options: dict[str, Any] = {"every": every, "overhead": overhead, "guard": guard or Guard(), "keeps": keeps}
        super().__init__(JaxListener(self.put, self.say, model, **options))
        self.listener.optimiser = next((tx for o in optimisers if (tx := transformation(o)) is not None), None)
        self._began = self._ended = self._failed = False
        self._untold = dict(UNTOLD)
        self._rate: Callable[[int], float | None] | None = None
        self._restarts = Restarts("optax", self.listener.begun)
        self._ahead = 0
        self._remembers = False  # the optimiser keeps something from step to step
        self._unused, self._training = Unused(), True
        self._bad_loss: NotFinite | None = None  # the first of all
        self._bad_gradient = False

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        unheard = (UNHEARD,) if self.listener.is_closed and self.steps == 0 and not self._failed else ()
        return (*unheard, *super().remarks, *self.listener.recorders.failed)

    def open(self) -> None:
        HUB.join(self.listener)

    def close(self) -> None:
        HUB.leave(self.listener)
        self.listener.close()

    def take_kept(self) -> Kept | None:
        passing, self.listener.passing = self.listener.passing, None
        if passing is None:
            return None
        try:
            return kept(passing, self.listener.optimiser, self.listener.asked)
        except Exception as error:
            self.listener.remark(f"what passed by could not be put together: {type(error).__name__}: {error}")
            return None

    def explain(self, error: BaseException) -> list[Observation]:
        self._failed = True
        return crash(error, self.steps)

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        if not self._began and (self._waiting or self.listener.is_closed):
            self._began = True
            found += self.made_of(self._at_the_beginning())
        found += super().drain()
        if self.listener.is_closed and not self._ended:
            self._ended = True
            found += self.made_of(self._at_the_end())
        return found

    def to_observations(self, record: Any) -> Iterator[Observation]:
        if not isinstance(record, Record):  # a note of a recorder's, at the end
            yield from observations_of((record,))
            return
        look = record.look
        yield from observations_of(record.notes)
        if look is not None and look.count is not None:
            self._ahead = int(np.asarray(look.count)) - record.step
        if look is not None and look.active is not None and self.listener.modes is not None:
            yield from self.listener.modes.trained(record.step, look.active)
            self._training = any(look.active) or not look.active
        for observation in observations(record, self._rate, training=self._training, ahead=self._ahead):
            self._unused.hear(observation)
            self._untold.pop(observation.role if isinstance(observation, Frame) else type(observation), None)
            yield observation
            if isinstance(observation, Frame) and observation.role is Role.GRADIENT:
                yield from self._not_finite(observation, record.loss)
            elif isinstance(observation, Step):
                yield from self._optimiser_met(record, observation.loss)
        self._bad_loss = self._bad_loss or not_finite_loss(record.step, record.loss)
        if look is not None:
            self.listener.tripwire.read(record.step)
            yield from (Absent(what, reason) for what, reason in self._untold.items())
            self._untold = {}

    def _at_the_beginning(self) -> Iterator[Observation]:
        """Once the first steps were taken: then the optimiser is known."""
        yield from (Absent(what, reason) for what, reason in ABSENT.items() if what is not Modes or self.listener.modes is None)
        tx = self.listener.optimiser
        if tx is None:
            return
        self._rate = rate_of(tx)
        made, scheduled, recipe = made_at(tx), scheduled_at(tx), read(tx)
        self._restarts = Restarts(recipe.name or "optax", self.listener.begun, made)
        self._remembers = recipe.name not in (None, "SGD") or bool(recipe.options.get("momentum"))
        for kind, place in ((CallKind.MADE_OPTIMISER, made), (CallKind.MADE_SCHEDULER, scheduled)):
            if place is not None:
                yield Call(kind, 0, place)

    def _optimiser_met(self, record: Record, loss: float | None) -> Iterator[Observation]:
        look, parameters = record.look, len(record.lane.names)
        if look is not None and look.count is not None:
            self._restarts.called_at = self.listener.called_at
            yield from self._restarts.met(record.step, int(np.asarray(look.count)), parameters, loss)
        elif look is not None and self._remembers and (place := self.listener.begins_inside) is not None:
            yield from self._restarts.inside(record.step, place, parameters, loss)

    def _not_finite(self, gradients: Frame, loss: float | None) -> Iterator[Observation]:
        """The first gradient that is not finite, unless its loss is not."""
        bad = np.flatnonzero(gradients.table[:, BROKEN].any(axis=1))
        if not len(bad) or self._bad_gradient or (loss is not None and not np.isfinite(loss)):
            return
        self._bad_gradient = True
        nans, infs = (int(n) for n in gradients.table[bad[0], BROKEN])
        yield NotFinite(gradients.step, "gradient", gradients.paths[bad[0]], nans, infs)
        yield from self.listener.tripwire.gradient_origin(gradients.step)

    def _at_the_end(self) -> Iterator[Observation]:
        if self._bad_loss is not None and not self.listener.tripwire.met:  # it was finite again before anybody looked
            yield self._bad_loss
        updated, discarded = self.listener.hears_updates, self.listener.discarded
        yield from self._unused.at_the_end(self.steps, updated=updated, discarded=discarded)
