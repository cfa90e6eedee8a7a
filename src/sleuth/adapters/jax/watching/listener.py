"""Follows one training, step by step, inside the user's loop."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax

from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.jax.nnx_form import NnxForm
from sleuth.adapters.jax.watching.asked_inputs import AskedInputs
from sleuth.adapters.jax.watching.awaited_steps import SHARES, AwaitedSteps
from sleuth.adapters.jax.watching.channel import Channel, Lane, Part, lane_of
from sleuth.adapters.jax.watching.measuring import measure_changes
from sleuth.adapters.jax.watching.modes import ModeRecorder
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.jax.watching.nonfinite_check import Tripwire
from sleuth.adapters.jax.watching.optimiser_states import Begun
from sleuth.adapters.jax.watching.record import Look, Measured, Record, Track
from sleuth.adapters.jax.watching.seen_batches import Passing
from sleuth.adapters.listening.alarms import Alarms
from sleuth.adapters.listening.listener import Listener, contained
from sleuth.adapters.listening.pace import Pace
from sleuth.adapters.listening.recorder import Note, Recorder, Recorders
from sleuth.core.contract.guard import Guard
from sleuth.core.location import Location
from sleuth.core.observation import Absent, Call, Observation, Role
from sleuth.core.observation.calls import CallKind

TAKEN = (
    "the step takes the memory of its weights for itself (donation) and writes them by hand, so what became of them is not known"
)

Put = Callable[[Record, int], None]
Say = Callable[..., None]


class MemoryRecorder(Recorder):
    """How often the data were read is not known, because no loader is heard."""

    def __init__(self, loop: "JaxListener") -> None:
        self._loop, self._memory = loop, ProcessMemory()
        self._found: list[Observation] = []

    def after_step(self, number: int) -> None:
        found = self._memory.after_step(self._loop.steps)
        self._found += [] if found is None else [found]

    def take(self) -> Sequence[Note]:
        found, self._found = self._found, []
        return found


class JaxListener(Listener):
    def __init__(
        self, put: Put, say: Say, model: Any, *, every: int | None, overhead: float, guard: Guard, keeps: bool = False
    ) -> None:
        super().__init__()
        self.say = say
        self.pace = Pace(every=every, overhead=overhead, shares=SHARES)
        self.awaited = AwaitedSteps(wanted=every is None)
        self.alarms = Alarms(guard)
        self.tripwire = Tripwire(self.alarms, say, self.remarks)
        self.modes = ModeRecorder(self, model) if NnxForm.claims(model) else None
        self.passing = Passing() if keeps else None  # what is kept for an examination after the end
        self.asked = AskedInputs(self) if keeps else None
        self.recorders = Recorders(r for r in (self.modes, self.asked, MemoryRecorder(self)) if r is not None)
        self.is_closed = False
        self.leave_when_enough: Callable[[], None] = lambda: None  # raises when there were enough steps
        self.optimiser: Any = None  # whose updates are applied, where that was told
        self.begun = Begun()  # states of optimisers
        self.called_at: Location | None = None  # the line that calls the compiled step
        self.begins_inside: Location | None = None  # where that begins the state of its optimiser, at every call
        self.hears_updates = False
        self.rounds = self._round = 0  # of a loop inside the compiled step, each a step of the training
        self.discarded = 0  # updates, where not one was kept; known at the end
        self._put = put
        self._shapes = Counter(_shapes(model))  # of its weights
        self._tracks: dict[Lane, Track] = {}
        self._round_seconds = 0.0
        self._located = False  # the line that applies updates is known
        self._weights_taken = False  # the step takes the memory of its weights, so what became of them is not known
        self.born = self._began = time.perf_counter()

    @property
    def own_seconds(self) -> float:
        return self.measured_seconds + self.looks * self.awaited.look_seconds

    @property
    def coming(self) -> int:
        """The number of the step whose gradient comes next: where updates are not heard, it ends the one before."""
        return self.steps + any(t.gradients and not t.hears_updates for t in self._tracks.values())

    @property
    def first_lane(self) -> Lane | None:
        return next(iter(self._tracks), None)

    def takes(self, part: Part) -> bool:
        """Is this the model that is watched? An update is, where its gradient was."""
        if self.gave_up is not None or self.knows(part.lane):
            return True
        if not part.is_gradient:
            return False
        own = Counter(zip(part.lane.shapes, part.lane.dtypes, strict=True))
        # One array may be an input; unless it is all that the model has.
        return own == self._shapes if part.single else not own - self._shapes

    def knows(self, lane: Lane) -> bool:
        return self._track(lane) is not None

    def is_due(self, part: Part) -> bool:
        if self.gave_up is not None:
            return False
        return self.pace.looks_at(self.steps) if part.is_gradient else self.is_looking(part.lane)

    def is_looking(self, lane: Lane) -> bool:
        track = self._track(lane)
        return track is not None and track.look is not None

    def begin(self, lane: Lane, order: list[int]) -> None:
        if lane not in self._tracks:
            self._tracks[lane] = Track(len(self._tracks), lane, order)

    def gradient(
        self,
        lane: Lane,
        loss: Any,
        measured: Measured | None,
        weights: Callable[[], list[Any] | None],
        channel: Channel | None = None,
    ) -> None:
        track = self._tracks[lane]
        track.discarded.taken(weights)
        if track.gradients and not track.hears_updates:
            self._step_ended(track, weights if track.held is not None else None)
        track.gradients += 1
        if loss is not None:
            track.losses.append(loss)
        if self.passing is not None and self.passing.first is not None and self.passing.first[0] == self.steps:
            self.passing.first_loss = loss
        # Of several gradients for one step none is what the step uses.
        track.look = None
        if measured is not None and track.gradients == 1:
            c = channel
            active = None if self.modes is None else self.modes.switches.read()
            track.look = (
                Look(measured, active=active) if c is None else Look(measured, None, c.lr, c.count, active, c.story, c.telling)
            )
        track.held = weights() if track.look is not None and not track.hears_updates else None

    def update(self, lane: Lane, measured: Measured | None) -> None:
        track = self._track(lane)
        if track is None or not track.gradients:
            return
        track.hears_updates = self.hears_updates = True
        if track.look is not None:
            track.look.update = measured
        self._step_ended(track, None)

    def updated(self, lane: Lane, before: list[Any]) -> None:
        """By a call of its own, whose result may be kept or not."""
        track = self._track(lane)
        if track is None:
            return
        track.discarded.updated(before)
        if not self._located:
            self._located = True
            self.say(Call(CallKind.UPDATE, self.steps, users_line()))

    def returned(self, lane: Lane, weights: Callable[[], list[Any] | None]) -> None:
        """New weights, by a compiled step that was given these."""
        track = self._track(lane)
        if track is not None and not track.discarded.kept and (before := weights()) is not None:
            self.updated(lane, before)

    @contained
    def called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A compiled function that takes no gradient."""
        self.recorders.tell("forward", args, kwargs)

    def remark(self, words: str) -> None:
        if words not in self.remarks:
            self.remarks.append(words)

    def remember(self, loss: Any, step: Any, given: Any, *, looked: bool = False) -> None:
        """`step`, `given`: the compiled function and its arguments; None where the step is not compiled as a whole."""
        self.tripwire.add(self.steps, loss, step, given)
        if looked:
            self.tripwire.looked(self.steps, loss, step, given)

    @contained
    def _ask(self) -> None:
        self.alarms.ask(self.steps)

    def speak_up(self) -> None:
        self._ask()
        self.alarms.speak_up()
        self.leave_when_enough()

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._finish()
            self.recorders.let_go()
            self._tracks.clear()

    @contained
    def _finish(self) -> None:
        """A step that began and did not end is told."""
        for track in self._tracks.values():
            if track.gradients:
                self._step_ended(track, None)
        heard = [t.discarded for t in self._tracks.values() if t.discarded.times or t.discarded.kept]
        self.discarded = sum(d.times for d in heard) if all(d.always for d in heard) else 0
        self.tripwire.close()
        self.recorders.tell("close")
        self.say(*self.recorders.take())

    def _track(self, lane: Lane) -> Track | None:
        """The names may differ: a gradient by several arguments counts them."""
        found = self._tracks.get(lane)
        if found is not None:
            return found
        same = (t for t in self._tracks.values() if (t.lane.shapes, t.lane.dtypes) == (lane.shapes, lane.dtypes))
        return next(same, None)

    def _step_ended(self, track: Track, weights: Callable[[], list[Any] | None] | None) -> None:
        look, losses = track.look, track.losses
        if look is not None and look.update is None and track.held is not None and weights is not None:
            look.update = _changes(track.held, weights())
            if look.update is None and not self._weights_taken:
                self._weights_taken = True
                self.say(Absent(Role.UPDATE, TAKEN))
        track.look, track.held, track.losses, track.gradients = None, None, [], 0
        self.recorders.tell("after_step", track.number)
        notes, seconds = self.recorders.take(), self._step_seconds()
        record = Record(self.steps, track.number, tuple(losses), seconds, track.lane, track.order, look, notes)
        self._put(record, record.size)
        self.looks += look is not None
        if self.awaited.are_known:
            seconds_of = {"look_seconds": self.awaited.look_seconds, "step_seconds": self.awaited.step_seconds}
            self.pace.step_awaited(self.steps, looked=look is not None, **seconds_of)
        self.steps += 1

    def _step_seconds(self) -> float:
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        if self.rounds:  # all of them came at once
            self._round_seconds = seconds / self.rounds if self._round % self.rounds == 0 else self._round_seconds
            seconds, self._round = self._round_seconds, self._round + 1
        return seconds


def _changes(before: list[Any], after: list[Any] | None) -> Measured | None:
    """None where the step has taken its arguments' memory for itself."""
    gone = after is None or any(getattr(array, "is_deleted", lambda: False)() for array in (*before, *after))
    return None if gone or after is None else measure_changes(before, after)


def _shapes(model: Any) -> list[tuple[tuple[int, ...], str]]:
    """Of every array that the model holds: a training may learn some of them only."""
    nnx: Any = sys.modules.get("flax.nnx")
    tree = nnx.state(model) if nnx is not None and isinstance(model, nnx.Module) else model
    lane = lane_of([leaf for leaf in jax.tree_util.tree_leaves(tree) if hasattr(leaf, "dtype")])[0]
    return list(zip(lane.shapes, lane.dtypes, strict=True))
