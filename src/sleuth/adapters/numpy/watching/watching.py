"""A watch of a loop around a hand-written network: its methods are patched on their classes, its functions in their modules."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from sleuth.adapters.common.manual_loop.crash import Network
from sleuth.adapters.common.manual_loop.notes import TakenStep
from sleuth.adapters.common.manual_loop.patches import Patches
from sleuth.adapters.common.manual_loop.watch import ManualLoopWatch
from sleuth.adapters.listening.pace import Pace, Shares
from sleuth.adapters.numpy.activity import activity
from sleuth.adapters.numpy.failure import layer_of
from sleuth.adapters.numpy.forms import understood
from sleuth.adapters.numpy.model_parts import Parameters
from sleuth.adapters.numpy.pass_listener import Listener
from sleuth.adapters.numpy.watching.heard_functions import HeardFunctions
from sleuth.adapters.numpy.watching.light_listener import LightStep
from sleuth.adapters.numpy.watching.listener import NumpyListener
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Observation, Precision
from sleuth.core.subject import Subject

# A look costs three times what it costs to copy: the other thread measures the copies, and Python lets one run at a time.
# To listen to a step lightly costs a tenth of what it costs in full (./dev bench watch numpy).
SHARES = Shares(looking=0.3 / 3, listening=0.2, light=0.1)
LAYERS_UNSEEN = "assertions on layers are not looked at in a hand-written network"


class NumpyWatching(ManualLoopWatch):
    no_step: ClassVar[str] = "no step was heard: the loop calls none of forward, backward and update of what was given"
    listener: NumpyListener

    def __init__(
        self, model: Any, optimisers: Sequence[Any], *, every: int | None, overhead: float, guard: Guard | None = None
    ) -> None:
        optimiser = optimisers[0] if optimisers else None
        self.model = understood(Subject(model, None, optimizer=optimiser)).model
        pace, guard = Pace(every=every, overhead=overhead, shares=SHARES), guard or Guard()
        listener = NumpyListener(self.model, optimiser, self.put, self.say, pace=pace, guard=guard)
        super().__init__(listener)
        self.patches = Patches(listener, listener.light)
        self._functions = HeardFunctions(self.model, optimiser, listener, self.patches)
        listener.loop_functions = self._functions

    def open(self) -> None:
        self._functions.install()
        if self.listener.alarms.guard.expectations:
            self.listener.remarks.append(LAYERS_UNSEEN)

    def to_observations(self, record: TakenStep | LightStep) -> Iterator[Observation]:
        if isinstance(record, LightStep):
            yield record.to_step()
        else:
            yield from super().to_observations(record)

    def inside(self, taken: TakenStep) -> Iterator[Observation]:
        if made := taken.notes.made:
            listener = Listener(self.model)
            listener.made = made
            yield from activity(listener, taken.step)
            yield Precision(taken.step, {m.path: str(m.array.dtype) for m in made})

    def network(self, error: Exception) -> Network:
        layer = layer_of(error.__traceback__, self.model)
        return Network(type(self.model).__name__, lambda: Parameters(self.model).arrays(), layer)
