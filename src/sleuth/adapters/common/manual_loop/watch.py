"""A watch of a loop that the user wrote by hand."""

from collections.abc import Iterator
from typing import Any, ClassVar

from sleuth.adapters.common.manual_loop.crash import Network, explain_crash
from sleuth.adapters.common.manual_loop.listener import ManualLoopListener
from sleuth.adapters.common.manual_loop.notes import TakenStep
from sleuth.adapters.common.manual_loop.patches import Patches
from sleuth.adapters.common.manual_loop.to_observations import observations
from sleuth.adapters.listening.watching import ListeningWatch
from sleuth.core.observation import Observation

# Looks hold copies of all weights, of gradients, and of what layers made.
MOST_BYTES_WAITING = 128 << 20


class ManualLoopWatch(ListeningWatch):
    most_bytes = MOST_BYTES_WAITING
    listener: ManualLoopListener
    patches: Patches
    no_step: ClassVar[str]  # why none was heard
    _crashed = False

    def close(self) -> None:
        try:
            self.listener.finish()
        finally:
            self.patches.close()
            self.listener.let_go()
        listener = self.listener
        if not listener.steps and not listener.backwards and listener.gave_up is None and not self._crashed:
            listener.remarks.append(self.no_step)

    def to_observations(self, record: Any) -> Iterator[Observation]:
        yield from observations(record, self.inside(record))

    def inside(self, taken: TakenStep) -> Iterator[Observation]:
        """What is told of the values inside the model, of a step that was looked at."""
        for part in taken.notes.inside:
            yield from part.tell()

    def explain(self, error: BaseException) -> list[Observation]:
        self._crashed = True
        return self.explain_error(error) if isinstance(error, Exception) else []

    def explain_error(self, error: Exception) -> list[Observation]:
        return explain_crash(error, self.listener.fell, self.network(error), self.steps)

    def network(self, error: Exception) -> Network:
        raise NotImplementedError
