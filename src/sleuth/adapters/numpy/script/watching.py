"""A watch of a training that a script runs by hand."""

from collections.abc import Iterator

import numpy as np

from sleuth.adapters.common.manual_loop.crash import Network, explain_crash
from sleuth.adapters.common.manual_loop.to_observations import frame
from sleuth.adapters.listening.pace import Pace
from sleuth.adapters.listening.steps import build_step
from sleuth.adapters.listening.watching import ListeningWatch
from sleuth.adapters.numpy.script.bench import ONLY_A_STEP
from sleuth.adapters.numpy.script.listener import LookedStep, PassedStep, ScriptListener
from sleuth.adapters.numpy.script.network import HeardNetwork
from sleuth.adapters.numpy.watching.watching import SHARES
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Observation, Role
from sleuth.core.subject import Subject

MOST_BYTES_WAITING = 128 << 20
# Small networks take ten thousand steps a second, and each leaves four numbers.
MOST_WAITING = 1 << 16


class ScriptWatching(ListeningWatch):
    most_waiting = MOST_WAITING
    most_bytes = MOST_BYTES_WAITING
    listener: ScriptListener

    def __init__(
        self, network: HeardNetwork, *, every: int | None, overhead: float, guard: Guard | None = None, keeps: bool = False
    ) -> None:
        self.network, self._keeps = network, keeps
        pace = Pace(every=every, overhead=overhead, shares=SHARES)
        listener = ScriptListener(network, self.put, self.say, pace=pace, guard=guard or Guard())
        super().__init__(listener)
        network.listener = listener

    def open(self) -> None:
        """The calls are in the script already."""

    def close(self) -> None:
        self.listener.finish()
        self.listener.let_go()
        if self.listener.losses.chosen is None:
            self.listener.remarks.append("no loss was heard: no number that the script computes is called loss, cost or error")

    def take_kept(self) -> Kept | None:
        if not self._keeps:
            return None
        subject = Subject(self.network, None)
        why = ONLY_A_STEP if self.network.loop is not None else self.network.no_loop
        return Kept(subject, (), at_start=True, only_a_step=why, forbidden="" if self.network.loop is not None else why)

    def to_observations(self, record: LookedStep | PassedStep) -> Iterator[Observation]:
        gradients = None
        if isinstance(record, LookedStep):
            gradients = frame(record.step, Role.GRADIENT, record.gradients)
            weights = frame(record.step, Role.WEIGHT, record.before)
            updates = frame(record.step, Role.UPDATE, _updates(record))
            yield from (f for f in (gradients, weights, updates) if f is not None)
        yield build_step(
            record.step,
            record.loss,
            lr=record.lr,
            gradients=None if gradients is None else gradients.table,
            seconds=record.seconds,
        )

    def explain(self, error: BaseException) -> list[Observation]:
        if not isinstance(error, Exception):
            return []
        return explain_crash(error, None, Network("network", lambda: dict(self.network.values), ""), self.steps)


def _updates(record: LookedStep) -> dict[str, np.ndarray]:
    with np.errstate(all="ignore"):
        return {name: array - record.before[name] for name, array in record.after.items()}
