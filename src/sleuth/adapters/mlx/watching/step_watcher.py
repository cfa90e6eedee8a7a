"""What every watch of a training in MLX does: notes its steps, looks at some in full, and hands both on.

Runs inside the user's training: nothing here may raise, touch numbers or random states, or have anything computed but once at a
step that is looked at.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial

import mlx.core as mx
import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.listening.alarms import not_finite_gradient
from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.pace import Pace, Shares, Stopwatch
from sleuth.adapters.listening.patches import attempt
from sleuth.adapters.listening.recorder import Recorder, Recorders, observations_of
from sleuth.adapters.listening.steps import not_finite_loss
from sleuth.adapters.mlx.describing import rate_of
from sleuth.adapters.mlx.state import single
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.growing_graphs import GrowingGraphs
from sleuth.adapters.mlx.watching.listeners import MlxListener
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.adapters.mlx.watching.loop_calls import LoopCalls
from sleuth.adapters.mlx.watching.memory_holders import MemoryRecorder
from sleuth.adapters.mlx.watching.pending_steps import LAG, LossState, PendingSteps, Record
from sleuth.adapters.mlx.watching.recorder import MlxRecorder
from sleuth.adapters.mlx.watching.rerun_nonfinite import ORIGIN_LOST, RecentSteps, find_origin
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Observation
from sleuth.core.observation.calls import CallKind
from sleuth.core.subject import Parts

SHARES = Shares(looking=0.4)
Batches = tuple[tuple[int, Parts], ...]


class StepWatcher(MlxListener):
    def __init__(
        self,
        model: nn.Module,
        put: Callable[[Record], None],
        recorders: Iterable[Recorder],
        *,
        every: int | None,
        overhead: float,
    ) -> None:
        super().__init__()
        self.model: nn.Module | None = model
        self.backwards = 0
        self.kept: Kept | None = None
        self.left: Batches = ()  # batches whose facts nobody took
        self.last_words: list[Observation] = []
        self.seconds_off_thread = 0.0  # since the last look: what making observations took
        self._pace = Pace(every=every, overhead=overhead, shares=SHARES)
        self._stopwatch = Stopwatch()
        self._calls = LoopCalls()
        self._recent = RecentSteps(partial(self.hear_lost, ORIGIN_LOST))
        self._pending = PendingSteps(put, self._loss_not_finite)
        self._recorders = Recorders([MemoryRecorder(), GrowingGraphs(), *recorders], MlxRecorder)
        self._look: Look | None = None
        self._losses: list[mx.array] = []
        self._hearing = ExitStack()  # while a gradient is taken at a step that is looked at

    def open(self) -> None:
        patches.join(self)

    def close(self) -> None:
        """Every hook is gone afterwards, whatever happens."""
        patches.leave(self)
        self._stop_hearing()
        self._end()
        self.remarks += self._recorders.failed
        self._recorders.let_go()
        self.model = self._look = None
        self._losses = []
        if self.gave_up is not None:
            self.gave_up.__traceback__ = None

    def give_up(self, error: Exception) -> None:
        super().give_up(error)
        self._stop_hearing()

    def _stop_hearing(self) -> None:
        attempt(partial(self.hear_lost, "what a step did was not heard to its end"), self._hearing.close)

    @contained
    def _end(self) -> None:
        if self.model is None:
            return
        self._before_end()
        self._pending.close()
        self._recent.clear()
        self.last_words = list(self._at_end(self.model))

    def _before_end(self) -> None:
        """Steps may still wait to be noticed."""

    def _at_end(self, model: nn.Module) -> Iterator[Observation]:
        """What is to be said at last."""
        raise NotImplementedError

    def _end_step(
        self, optimiser: Optimizer | None, number: int, after: Callable[[], dict[str, mx.array]] | None, notes: list[Observation]
    ) -> None:
        """`after`: the weights that the step left; it may walk through the whole model, so only looks ask. None: nobody knows."""
        began = time.perf_counter()
        look, self._look = self._look, None
        notes = [*self._calls.take_notes(), *notes]
        heard = self._calls.take(number)
        notes += heard.phases(self.steps, number, alone=(CallKind.VALIDATE,))
        copy = None
        if look is not None and after is not None:
            look.after = dict(after())
            copy = self._looked(look, optimiser, number, notes)
        self._recorders.tell("after_step", number)
        notes += observations_of(self._recorders.take())
        seconds, own = self._stopwatch.step_ended(self.measured_seconds + time.perf_counter() - began)
        record = Record(
            self.steps,
            number,
            tuple(self._losses),
            None if copy is None or optimiser is None else rate_of(optimiser),
            heard,
            seconds - own,
            tuple(notes),
            copy,
            training=self.model is None or bool(self.model.training),
            state=LossState.NEW if copy is None else LossState.COMPUTED,
            batches=() if copy is None else self._take_batches(),
        )
        self._losses = []
        if copy is not None:
            off_thread, self.seconds_off_thread = self.seconds_off_thread, 0.0
            own += off_thread
        self._pace.step_ended(self.steps, seconds, looked=copy is not None, own_seconds=own)
        self.steps += 1
        self._pending.add(record)
        if self._is_decided_at_once:
            self._pending.decide_last()
        self._pending.hand_on(LAG if copy is None else 0)

    # A step that ends when the next begins: the loop has computed its loss by then, or has not.
    _is_decided_at_once = False

    def _looked(self, look: Look, optimiser: Optimizer | None, number: int, notes: list[Observation]) -> LookCopy | None:
        """None: nothing in it has values."""
        assert self.model is not None
        look.losses = list(self._losses)
        look.held = list(self._pending.held_losses())
        look.held += [a for one in single(optimiser) if isinstance(a := one._state.get("learning_rate"), mx.array)]
        if not look.compute():
            self._losses = []
            return None
        self._pending.computed()
        copy = look.copied(self.steps, number)
        bad = [bad for loss in look.losses if (bad := not_finite_loss(self.steps, float(loss.item()))) is not None][:1]
        bad += [bad for bad in (not_finite_gradient(self.steps, copy.gradients.items()),) if bad is not None]
        notes += bad
        if bad and (origin := find_origin(look, self.steps, self.model, partial(self.hear_lost, ORIGIN_LOST))) is not None:
            notes.append(origin)
        self._pending.learn(look.loss_bytes())
        self._recorders.tell("looked", look, copy)
        self.looks += 1
        return copy

    def _take_batches(self) -> Batches:
        """In the host's memory, since the last time."""
        return ()

    def _loss_not_finite(self, step: int, value: float) -> Iterable[Observation]:
        return self._recent.broken(step, value, self.model)
