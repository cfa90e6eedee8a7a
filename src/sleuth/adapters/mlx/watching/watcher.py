"""One watch of a loop in MLX: notes what its steps do, looks at some in full, and hands both on.

Runs inside the user's training: nothing here may raise, touch numbers or random states, or have anything computed but once at a
step that is looked at.
"""

import functools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, ParamSpec

import mlx.core as mx
import mlx.nn as nn
from mlx.optimizers import Optimizer
from mlx.utils import tree_flatten

from sleuth.adapters.mlx.anatomy import is_buffer, last_paths, parameters
from sleuth.adapters.mlx.arrays import arrays_in, evaluated
from sleuth.adapters.mlx.describing import rate_of
from sleuth.adapters.mlx.hearing import Hearing
from sleuth.adapters.mlx.place import users_line
from sleuth.adapters.mlx.state import single
from sleuth.adapters.mlx.watching import looking, taps
from sleuth.adapters.mlx.watching.keeping import Keeper
from sleuth.adapters.mlx.watching.losses import LAG, Patience, number_of
from sleuth.adapters.mlx.watching.pace import Pace
from sleuth.adapters.mlx.watching.reach import Reach
from sleuth.adapters.mlx.watching.record import Record
from sleuth.core.guard import Alarm, Guard
from sleuth.core.kept import Kept
from sleuth.core.observation import Call, Modes, NotFinite, Observation, Pending
from sleuth.core.trial import Connection

P = ParamSpec("P")
COMPILED = (
    "the step was compiled by mx.compile before the watch began, and what happens in it cannot be heard: open the watch before, "
    "or use sleuth run"
)
ASSERTIONS = "assertions on layers are not looked at in MLX: a layer's output is not computed when it returns"


def quietly(method: Callable[P, None]) -> Callable[P, None]:
    """What goes wrong ends the listening and is said; our own time is counted."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        watcher: Any = args[0]
        if watcher.gave_up is not None:
            return
        began = time.perf_counter()
        try:
            method(*args, **kwargs)
        except Exception as error:
            watcher.give_up(error)
        watcher.own_seconds += time.perf_counter() - began

    return call


class Watcher(taps.Listener):
    def __init__(
        self,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        put: Callable[[Record], None],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        self.model: nn.Module | None = model
        self.guard = guard or Guard()
        self._numbers = {id(o): number for number, o in enumerate(optimisers)}
        self._held: list[Optimizer] = list(optimisers)  # an identity is not given twice while its optimiser lives
        self._put = put
        asked = self.guard.every_gradient or self.guard.every_activation
        self._pace = Pace(every=1 if asked else every, overhead=overhead)
        self.steps = self.looks = self.backwards = 0
        self.own_seconds = 0.0
        self.gave_up: Exception | None = None
        self.deaf: list[str] = [ASSERTIONS] if self.guard.expectations else []
        self._first_path = {last: first for first, last in last_paths(model).items()}
        self._look: looking.Look | None = None
        self._hearing = ExitStack()
        self._losses: list[mx.array] = []
        self._calls: list[str] = []
        self._places: dict[str, Call] = {}
        self._notes: list[Observation] = []
        self._modes: Modes | None = None
        self._waiting: deque[Record] = deque()
        self._patience = Patience()
        self._reach = Reach()
        self._keeps = keeps
        self._keeper: Keeper | None = None
        self.kept: Kept | None = None
        self._connection: Connection | None = None
        self._due: list[Callable[[], None]] = []
        self._ended = time.perf_counter()
        self._own_before = 0.0

    def open(self) -> None:
        taps.join(self)

    def close(self) -> None:
        taps.leave(self)
        self._hearing.close()
        self._close_losses()
        self._put_by()
        self.model, self._look = None, None
        self._losses, self._held = [], []
        if self.gave_up is not None:
            self.gave_up.__traceback__ = None

    @quietly
    def _put_by(self) -> None:
        if self.model is not None:
            self._connection = self._reach.connection(self.model)
            self.kept = None if self._keeper is None else self._keeper.kept(self.model)
        self._keeper = None

    @quietly
    def _close_losses(self) -> None:
        """The loop is over: what is still held is computed now."""
        self._note_last_loss()
        held = [loss for record in self._waiting if record.state == "held" for loss in record.losses]
        if held and all(evaluated(held)):
            self._computed_held()
        self._waiting = deque(r._replace(state="gone", losses=()) if r.state == "held" else r for r in self._waiting)
        self._flush(0)

    def last_words(self) -> Iterator[Observation]:
        if self._connection is not None:
            yield self._connection
        yield from self._places.values()
        counts = {"backward": self.backwards, "forward": self.backwards}
        idle = {0: self.backwards} if self._numbers and self.steps == 0 and self.backwards else {}
        calls = tuple(self._calls)
        yield Pending(self.steps, calls, counts if self.backwards else {}, len(self._numbers), idle)

    def give_up(self, error: Exception) -> None:
        self.gave_up = self.gave_up or error
        self._hearing.close()

    # What the taps tell.

    @quietly
    def hear_gradient_begin(self, taken: taps.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if taken.model is not None and taken.model is not self.model:
            return
        self._note_last_loss()
        assert self.model is not None
        if self._look is None and self._pace.looks_at(self.steps):
            self._look = looking.Look()
        self._say("forward" if self.model.training else "forward-in-eval")
        if self._keeps and self._keeper is None and self.steps == 0:
            self._keeper = Keeper(self.model, self._held)
        if self._keeper is not None:
            self._keeper.pass_by(self.steps + 1, args)
        if self._look is not None:
            modes = looking.modes_of(self.model, self.steps + 1)
            if self._modes is None or _changed(modes, self._modes):
                self._modes = modes
                self._notes.append(modes)
            self._look.again = None if taken.fun is None else functools.partial(taken.fun, *args[1:], **kwargs)
            hearing = Hearing(self.model)
            self._look.hearings.append(hearing)
            self._hearing.enter_context(hearing.listening())

    @quietly
    def hear_gradient_failed(self) -> None:
        self._hearing.close()

    @quietly
    def hear_gradient(self, taken: taps.Differentiated, value: Any, gradients: Any) -> None:
        self._hearing.close()
        if taken.model is not self.model and not self._is_mine(taken.model, gradients):
            self._look = None if self._look is not None and not self._losses else self._look
            return
        self.backwards += 1
        self._say("backward")
        if self._look is not None:
            self._look.raw = self._named(gradients)
            self._reach.before(self._look.raw)
        loss = next(iter(arrays_in(value)), None)
        if loss is not None and loss.size == 1:
            self._losses.append(loss)

    @quietly
    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if not self._is_mine(target, gradients):
            return
        if self._look is not None:
            self._look.gradients = self._named(gradients)
            self._look.before = self._weights()
            if self.guard.every_gradient or self.guard.every_activation:
                self._guard_step()
        self._ask()

    @quietly
    def hear_step(self, optimiser: Optimizer, target: Any, after: Any) -> None:
        if not self._is_mine(target, after):
            return
        changed = self._named(after) if after is not None else self._weights()
        self._say("step")
        self._end_step(optimiser, changed)

    def speak_up(self) -> None:
        due, self._due = self._due, []
        for act in due:
            act()

    @quietly
    def hear_compiled_begin(self, step: taps.Compiled) -> None:
        if step.model is self.model and self._pace.looks_at(self.steps):
            self._look = looking.Look(before=self._weights())

    @quietly
    def hear_compiled(self, step: taps.Compiled, result: Any) -> None:
        if step.model is not self.model or step.optimiser is None:
            return
        self._note_last_loss()
        loss = next((a for a in arrays_in(result) if a.size == 1 and mx.issubdtype(a.dtype, mx.floating)), None)
        self._losses = [] if loss is None else [loss]
        self._end_step(step.optimiser, self._weights())

    # Steps.

    def _end_step(self, optimiser: Optimizer, changed: dict[str, mx.array]) -> None:
        now = time.perf_counter()
        self.steps += 1
        look, self._look = self._look, None
        number = self._numbers.setdefault(id(optimiser), len(self._numbers))
        if number == len(self._held):
            self._held.append(optimiser)
        notes: list[Observation] = [*self._notes]
        looked = look is not None and self._looked(look, optimiser, changed, notes)
        record = Record(
            self.steps,
            number,
            tuple(self._losses),
            None if not looked else rate_of(optimiser),
            tuple(self._calls),
            now - self._ended,
            tuple(notes),
            training=self.model is None or bool(self.model.training),
            state="computed" if looked else "new",
        )
        self._losses, self._calls, self._notes = [], [], []
        self._waiting.append(record)
        self._flush(0 if looked else LAG)
        ended = time.perf_counter()
        own = self.own_seconds - self._own_before + ended - now
        self._pace.step_ended(self.steps, ended - self._ended - own, looked=looked, own_seconds=own)
        self._ended, self._own_before = ended, self.own_seconds + ended - now

    def _looked(self, look: looking.Look, optimiser: Optimizer, changed: dict[str, mx.array], notes: list[Observation]) -> bool:
        look.losses = list(self._losses)
        look.after = changed
        look.held = [loss for record in self._waiting if record.state == "held" for loss in record.losses]
        look.held += [a for one in single(optimiser) if isinstance(a := one._state.get("learning_rate"), mx.array)]
        if not look.compute():
            self.deaf = [COMPILED]
            self._losses = []
            return False
        assert self.model is not None
        self._computed_held()
        notes += looking.observations(look, self.steps, self.model)
        if look.raw:
            self._reach.after(look.raw, look.hearings)
        self._patience.learn(look.loss_bytes())
        if self._keeper is not None and self.steps == 1 and len(look.hearings) == len(look.losses) == 1:
            self._keeper.learn(look.hearings[0], float(look.losses[0].item()))
        self.looks += 1
        return True

    def _note_last_loss(self) -> None:
        """Before the next step the user still holds the loss of the last, computed or not."""
        if self._waiting and self._waiting[-1].state == "new":
            last = self._waiting[-1]
            state = self._patience.fate(last.losses) if last.losses else "gone"
            self._waiting[-1] = last._replace(state=state, losses=() if state == "gone" else last.losses)

    def _computed_held(self) -> None:
        for i, record in enumerate(self._waiting):
            if record.state == "held":
                self._waiting[i] = record._replace(state="computed")
        self._patience.held = 0

    def _flush(self, lag: int) -> None:
        """Hands on what is old enough; a loss that is held keeps those behind it waiting."""
        while len(self._waiting) > lag and self._waiting[0].state != "held":
            record = self._waiting.popleft()
            value = number_of(record.losses) if record.state == "computed" and record.losses else None
            self._put(record._replace(losses=(), value=value))

    # Alarms.

    def _guard_step(self) -> None:
        assert self._look is not None
        self._look.losses = list(self._losses)
        if not self._look.compute():
            return
        for bad in looking.not_finite(self._look, self.steps + 1):
            self._alarm(bad)

    def _alarm(self, bad: NotFinite) -> None:
        what = "the loss" if bad.what == "loss" else f"the gradient of {bad.where}"
        message = f"{what} is not finite at step {bad.step}"
        act = self.guard.tell(Alarm(f"{bad.what}-not-finite", bad.step, message, (bad,)))
        if act is not None:
            self._due.append(act.do)

    def _ask(self) -> None:
        """What checks found since, and the user wants something done about."""
        while self.guard.asked:
            finding = self.guard.asked.popleft()
            act = self.guard.tell(Alarm(finding.name, self.steps + 1, finding.summary, finding=finding))
            if act is not None:
                self._due.append(act.do)

    # Names.

    def _say(self, kind: str) -> None:
        if not self._calls or self._calls[-1] != kind:
            self._calls.append(kind)
        if kind not in self._places:
            self._places[kind] = Call(kind, self.steps + 1, users_line())
            self._notes.append(self._places[kind])

    def _is_mine(self, target: Any, tree: Any) -> bool:
        if isinstance(target, nn.Module):
            return target is self.model
        names = [name for name, _ in tree_flatten(tree)] if tree else []
        return bool(names) and all(name in self._first_path for name in names)

    def _named(self, tree: Any) -> dict[str, mx.array]:
        return {self._first_path[n]: a for n, a in tree_flatten(tree) if n in self._first_path and isinstance(a, mx.array)}

    def _weights(self) -> dict[str, mx.array]:
        return {} if self.model is None else {e.path: e.array for e in parameters(self.model) if e.trainable and not is_buffer(e)}


def _changed(one: Modes, other: Modes) -> bool:
    return (one.root, one.active, one.resting) != (other.root, other.active, other.resting)
