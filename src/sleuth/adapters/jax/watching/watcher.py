"""Follows one training, step by step. Runs inside the user's loop: what goes wrong here ends the listening and is said."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from sleuth.adapters.jax.watching.asked_inputs import Asked
from sleuth.adapters.jax.watching.channel import Channel, Lane, Part
from sleuth.adapters.jax.watching.measuring import measure_changes
from sleuth.adapters.jax.watching.modes import Switches, Validation
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.jax.watching.nonfinite_check import Tripwire
from sleuth.adapters.jax.watching.optimiser_states import Begun
from sleuth.adapters.jax.watching.pace import Pace
from sleuth.adapters.jax.watching.record import Look, Measured, Record, Track
from sleuth.adapters.jax.watching.seen_batches import Passing
from sleuth.core.contract.guard import Alarm, Guard
from sleuth.core.location import Location
from sleuth.core.observation import Call, Observation

Shapes = Iterable[tuple[tuple[int, ...], str]]


class Watcher:
    def __init__(
        self, put: Callable[[Record], None], shapes: Shapes | None, *, every: int | None, overhead: float, guard: Guard
    ) -> None:
        """`shapes`: of the weights of the model that is watched, where that is known."""
        self.pace = Pace(every=every, overhead=overhead)
        self.measured_seconds = 0.0
        self.steps = 0
        self.looks = 0
        self.gave_up: Exception | None = None
        self.is_closed = False
        self.most_steps: Callable[[], None] = lambda: None  # raises when there were enough
        self.tripwire = Tripwire(guard)
        self._put, self._guard = put, guard
        self._shapes = None if shapes is None else Counter(shapes)
        self._tracks: dict[Lane, Track] = {}
        self.switches: Switches | None = None  # of the model, where it has any that can be read
        self.validation: Validation | None = None  # that is going on
        self.passing: Passing | None = None  # what is kept for an examination after the end
        self.asked: Asked | None = None
        self.optimiser: Any = None  # whose updates are applied, where that was told
        self.begun = Begun()  # states of optimisers
        self.called_at: Location | None = None  # the line that calls the compiled step
        self.begins_inside: Location | None = None  # where that begins the state of its optimiser, at every call
        self.hears_updates = False
        self.taken = False  # the step takes the memory of its weights, so what became of them is not known
        self.said: list[str] = []
        self.rounds = self._round = 0  # of a loop inside the compiled step, each a step of the training
        self._round_seconds = 0.0
        self._validated: set[str] = set()  # kinds of validation whose line is known
        self._located = False  # the line that applies updates is known
        self.discarded = 0  # updates, where not one was kept; known at the end
        self.born = self._began = time.perf_counter()

    @property
    def own_seconds(self) -> float:
        return self.measured_seconds + self.looks * self.pace.extra_seconds

    def takes(self, part: Part) -> bool:
        """Is this the model that is watched? An update is, where its gradient was."""
        if self.gave_up is not None or self.knows(part.lane):
            return True
        if not part.is_gradient or self._shapes is None:
            return False
        own = Counter(zip(part.lane.shapes, part.lane.dtypes, strict=True))
        # One array may be an input; unless it is all that the model has.
        return own == self._shapes if part.single else not own - self._shapes

    @property
    def coming(self) -> int:
        """The number of the step whose gradient comes next: where updates are not heard, it ends the one before."""
        return self.steps + any(t.gradients and not t.hears_updates for t in self._tracks.values())

    def knows(self, lane: Lane) -> bool:
        return self._track(lane) is not None

    def begin(self, lane: Lane, order: list[int]) -> None:
        if lane not in self._tracks:
            self._tracks[lane] = Track(len(self._tracks), lane, order)

    def is_due(self, part: Part) -> bool:
        if self.gave_up is not None:
            return False
        return self.pace.looks_at(self.steps) if part.is_gradient else self.is_looking(part.lane)

    def is_looking(self, lane: Lane) -> bool:
        track = self._track(lane)
        return track is not None and track.look is not None

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
            active = None if self.switches is None else self.switches.read()
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
            self.tripwire.found.append(Call("update", self.steps, users_line()))

    def returned(self, lane: Lane, weights: Callable[[], list[Any] | None]) -> None:
        """New weights, by a compiled step that was given these."""
        track = self._track(lane)
        if track is not None and not track.discarded.kept and (before := weights()) is not None:
            self.updated(lane, before)

    def called(self, arguments: Any) -> None:
        """A compiled function that takes no gradient: with the model among its arguments it is a validation."""
        if self.asked is not None and self._tracks:
            self.asked.hear(self.steps, arguments, next(iter(self._tracks)))
        if self.switches is None or self.gave_up is not None or not self.switches.is_given(arguments):
            return
        active = self.switches.read()
        if self.validation is None or self.validation.active != active:
            self.validation = Validation(active)
            if self.validation.kind not in self._validated:
                self._validated.add(self.validation.kind)
                self.tripwire.found.append(Call(self.validation.kind, self.steps, users_line()))
        self.validation.calls += 1

    def say(self, remark: str) -> None:
        if remark not in self.said:
            self.said.append(remark)

    def remember(self, loss: Any, step: Any, given: Any, *, looked: bool = False) -> None:
        self.tripwire.add(self.steps, loss, step, given)
        if looked:
            self.tripwire.looked(self.steps, loss, step, given)

    def speak_up(self) -> None:
        """The one place from which something of ours may raise into the user's code, because the user asked for it."""
        for act in self.tripwire.acts(self.steps):
            act()
        while self._guard.asked:
            finding = self._guard.asked.popleft()
            wanted = self._guard.tell(Alarm(finding.name, self.steps, finding.summary, finding=finding))
            if wanted is not None:
                wanted.do()
        self.most_steps()

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        for track in self._tracks.values():
            if track.gradients:
                self._step_ended(track, None)
        heard = [t.discarded for t in self._tracks.values() if t.discarded.times or t.discarded.kept]
        self.discarded = sum(d.times for d in heard) if all(d.always for d in heard) else 0
        self.tripwire.close(self.steps)
        self._tracks.clear()

    def give_up(self, error: Exception) -> None:
        self.gave_up = self.gave_up or error

    def take_notes(self) -> list[Observation]:
        found, self.tripwire.found = self.tripwire.found, []
        return found

    @property
    def remarks(self) -> list[str]:
        return [*self.said, *self.tripwire.remarks]

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
            self.taken |= look.update is None
        track.look, track.held, track.losses, track.gradients = None, None, [], 0
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        if self.rounds:  # all of them came at once
            self._round_seconds = seconds / self.rounds if self._round % self.rounds == 0 else self._round_seconds
            seconds, self._round = self._round_seconds, self._round + 1
        validation, self.validation = self.validation, None
        record = Record(self.steps, track.number, tuple(losses), seconds, track.lane, track.order, look, validation=validation)
        self._put(record)
        self.looks += look is not None
        self.pace.step_ended(self.steps, looked=look is not None)
        self.steps += 1


def _changes(before: list[Any], after: list[Any] | None) -> Measured | None:
    """None where the step has taken its arguments' memory for itself."""
    gone = after is None or any(getattr(array, "is_deleted", lambda: False)() for array in (*before, *after))
    return None if gone or after is None else measure_changes(before, after)
