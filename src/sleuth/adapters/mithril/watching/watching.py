"""A watch of a loop around evaluate() of a physical model."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from sleuth.adapters.common.manual_loop.crash import Network
from sleuth.adapters.common.manual_loop.learning_rate import is_number
from sleuth.adapters.common.manual_loop.loop_functions import LoopFunctions
from sleuth.adapters.common.manual_loop.notes import TakenStep
from sleuth.adapters.common.manual_loop.patches import Handlers, Patches
from sleuth.adapters.common.manual_loop.watch import ManualLoopWatch
from sleuth.adapters.listening.pace import Pace, Shares
from sleuth.adapters.listening.steps import not_finite_loss
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.failure import explain
from sleuth.adapters.mithril.given_model import is_physical
from sleuth.adapters.mithril.stepping import METHODS
from sleuth.adapters.mithril.watching.call_handlers import EvaluateCall, LossCall, UpdateCall
from sleuth.adapters.mithril.watching.listener import MithrilListener, number
from sleuth.core.contract.guard import Guard
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Crash, Observation
from sleuth.core.runtime.place import location_of

COMPILE = "a logical model does nothing by itself: watch the physical model that ml.compile(…) returns."
LAYERS_UNSEEN = "assertions on layers are not looked at in a Mithril model"


class MithrilWatching(ManualLoopWatch):
    no_step: ClassVar[str] = "no step was heard: the loop calls evaluate() of another model, or never asks for gradients"
    listener: MithrilListener

    def __init__(
        self, model: Any, optimisers: Sequence[Any], *, every: int | None, overhead: float, guard: Guard | None = None
    ) -> None:
        self._physical = model[0] if isinstance(model, tuple) else model
        if not is_physical(self._physical):
            raise UnusableInput(COMPILE)
        self._optimiser = optimisers[0] if optimisers else None
        pace = Pace(every=every, overhead=overhead, shares=Shares(looking=0.5))
        listener = MithrilListener(self._physical, self._optimiser, self.put, self.say, pace=pace, guard=guard or Guard())
        super().__init__(listener)
        self.patches = Patches(listener)
        self._loss_is_lost = False  # one that was not waited for
        listener.loop_functions = LoopFunctions(
            self.patches, self._optimiser, listener.passes, lambda number: Handlers(LossCall(listener, number))
        )

    def open(self) -> None:
        physical, optimiser, listener = self._physical, self._optimiser, self.listener
        evaluate, update = Handlers(EvaluateCall(listener)), Handlers(UpdateCall(listener))
        self.patches.method(type(physical), "evaluate", lambda it: evaluate if it is physical else None, foreign=True)
        if optimiser is not None and not is_number(optimiser):
            kind = type(optimiser)
            name = next((n for n in METHODS if inspect.isfunction(getattr(kind, n, None))), None)
            if name is not None:
                found = self.patches.method(kind, name, lambda it: update if it is optimiser else None)
                listener.updates_heard = found
        listener.loop_functions.look_around()
        if listener.alarms.guard.expectations:
            listener.remarks.append(LAYERS_UNSEEN)

    def to_observations(self, record: TakenStep) -> Iterator[Observation]:
        if record.late_loss is not None:
            record = record._replace(loss=number(record.late_loss))
            bad = not_finite_loss(record.step, record.loss)
            if bad is not None and not self._loss_is_lost:
                self._loss_is_lost = True
                yield bad
        yield from super().to_observations(record)

    def explain_error(self, error: Exception) -> list[Observation]:
        if self.listener.fell is None:
            return super().explain_error(error)
        lines = str(error).splitlines() or [""]
        crash = Crash(self.steps, type(error).__name__, lines[0], "forward", location_of(error.__traceback__))
        return [crash, explain(error, "forward")]

    def network(self, error: Exception) -> Network:
        params = self.listener.params
        return Network("params", lambda: {k: arrays.values(v) for k, v in params.items() if arrays.is_array(v)})
