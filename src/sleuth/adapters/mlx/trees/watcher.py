"""One watch of a training of a tree. A step is over when the next gradient is taken of other weights.

As in `watching/watcher.py`: nothing may raise, touch numbers, or have anything computed but once at a step that is looked at.
"""

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import mlx.core as mx
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.describing import rate_of
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.adapters.mlx.trees.batches import TreeBatches
from sleuth.adapters.mlx.trees.candidates import losses_in
from sleuth.adapters.mlx.trees.kept_training import TreeKeeper
from sleuth.adapters.mlx.trees.new_trainings import Restarts
from sleuth.adapters.mlx.trees.roles import Roles, roles_of
from sleuth.adapters.mlx.trees.split_model_loss import Parted, parted
from sleuth.adapters.mlx.trees.tree import Named, Tree, named, same
from sleuth.adapters.mlx.trees.validation_loss import Valuing
from sleuth.adapters.mlx.watching import full_look, patches
from sleuth.adapters.mlx.watching.batches import arrays_by_path
from sleuth.adapters.mlx.watching.contained import contained
from sleuth.adapters.mlx.watching.growing_graphs import Graphs
from sleuth.adapters.mlx.watching.loop_calls import Story
from sleuth.adapters.mlx.watching.losses import LAG
from sleuth.adapters.mlx.watching.pace import Clock, Pace
from sleuth.adapters.mlx.watching.pending_steps import Waiting
from sleuth.adapters.mlx.watching.process_memory import ProcessMemory
from sleuth.adapters.mlx.watching.recent_steps import Recent
from sleuth.adapters.mlx.watching.record import Record
from sleuth.adapters.mlx.watching.tape import Tape
from sleuth.adapters.mlx.watching.unreached_parameters import Reach
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Evaluation, Observation, Origin, Pending
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection

COMPILED = "the step is compiled: of what happens inside it the weights, what it is given and its loss were seen"


class TreeWatcher(patches.Listener):
    def __init__(
        self, model: Tree, put: Callable[[Record], None], *, every: int | None, overhead: float, keeps: bool = False
    ) -> None:
        self.model: Tree | None = model
        self.steps = self.looks = self.backwards = 0
        self.own_seconds = 0.0
        self.gave_up: Exception | None = None
        self.deaf: list[str] = []
        self.kept: Kept | None = None
        self.left: tuple[tuple[int, Parts], ...] = ()
        self.restarts = Restarts()
        self._pace = Pace(every=every, overhead=overhead)
        self._recent, self._reach = Recent(), Reach()
        self._waiting = Waiting(lambda record: put(self.restarts.heard(record)), self._broken)
        self._graphs, self._memory = Graphs(), ProcessMemory()
        self._batches = TreeBatches(keeps=keeps)
        self._keeper = TreeKeeper() if keeps else None
        self._valuing: Valuing | None = None
        self._evaluations: list[Evaluation] = []
        self._story = Story()
        self._look: full_look.Look | None = None
        self._losses: list[mx.array] = []
        self._tape: Tape | None = None
        self._hearing = ExitStack()
        self._weights: Named | None = None  # of the last gradient
        self._applied = False  # an optimiser of MLX's own has made others of them since
        self._optimiser: weakref.ref[Optimizer] | None = None
        self._connection: Connection | None = None
        self._clock = Clock()

    def open(self) -> None:
        patches.join(self)

    def close(self) -> None:
        self._hearing.close()
        if self._valuing is not None:
            self._valuing.close()
        patches.leave(self)
        self._put_by()
        self._memory.close()
        self.model = self._weights = self._tape = self._look = None
        self._losses = []
        if self.gave_up is not None:
            self.gave_up.__traceback__ = None

    @contained
    def _put_by(self) -> None:
        if self._weights is not None and self._story.calls.names:  # how its step ended nobody knows
            self._look = None
            self._end_step(None)
        self._waiting.close()
        self._recent.clear()
        self._batches.settle()
        self._batches.clear()
        self.left = self._batches.take()
        if self.model is not None and self._keeper is not None:
            train = self._batches.reservoir.taken()
            self.kept = self._keeper.kept(self.model, train, [] if self._valuing is None else self._valuing.groups())
            self._evaluations += () if self._valuing is None else self._valuing.evaluations(train)
        if self.model is not None:
            self._connection = self._reach.connection(self.model, None)

    def last_words(self) -> Iterator[Observation]:
        if self._connection is not None:
            yield self._connection
        yield from self._story.places.values()
        yield from self._evaluations
        counts = {"backward": self.backwards, "forward": self.backwards} if self.backwards else {}
        yield Pending(self.steps, (), counts, 0, {})

    def give_up(self, error: Exception) -> None:
        self.gave_up = self.gave_up or error
        self._hearing.close()

    @contained
    def begin_with(self, weights: Named, gradients: Named, losses: list[mx.array]) -> None:
        """The step before, which showed that this is a training."""
        if self._keeper is not None:
            self._keeper.start(weights)
        self._weights, self._losses = weights, list(losses)
        self._look = full_look.Look(before=dict(weights), raw=dict(gradients))
        self._story.calls.say("forward")
        self._story.calls.say("backward")

    @contained
    def hear_gradient_begin(self, taken: patches.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        weights = named(taken.learned(args)) if taken.model is None else {}
        if not self._is_mine(taken.code, weights):
            return
        assert self.model is not None
        self._weights_came(weights)
        again = None if taken.fun is None else partial(_again, self.model, taken, args, kwargs)
        # Others of the same values, where the user writes into his own.
        held = {name: mx.array(a) for name, a in weights.items()} if self.model.in_place else weights
        self._recent.add(self.steps + 1, held, again, (args, kwargs))
        self._story.say("forward", self.steps + 1)
        self._batches.add(self.steps + 1, taken.fed(args), kwargs, looked=self._look is not None)
        if self._look is None:
            return
        if self._tape is None:
            self._tape = Tape(None)
            self._hearing.enter_context(self._tape.listening())  # first, so that what is heard around it is not on it
            self._hearing.enter_context(taken.entering(self._tape.begin))
        self._look.again = again
        self._look.hearings.append(Hearing(self.model))
        self._hearing.enter_context(self._look.hearings[-1].listening())

    @contained
    def hear_gradient_failed(self) -> None:
        self._hearing.close()

    @contained
    def hear_gradient(self, taken: patches.Differentiated, value: Any, gradients: Any) -> None:
        found = named(gradients) if taken.model is None else {}
        if not self._is_mine(taken.code, found):
            return
        self._hearing.close()
        self.backwards += 1
        self._story.say("backward", self.steps + 1)
        self._losses += losses_in(value)
        if self._look is not None:
            self._look.raw = found
            self._reach.before(self._look.raw)

    @contained
    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if self.model is not None and self.model.fits(named(gradients)):
            self._optimiser = weakref.ref(optimiser)
            self._story.say("step", self.steps + 1)
            self._applied = True
            if self._keeper is not None:
                self._keeper.optimiser(optimiser)

    @contained
    def hear_compiled_begin(self, step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        weights = compiled_weights(step, args, kwargs)
        if self._is_mine(step.reading.code, weights):
            self.deaf = [COMPILED]
            self._weights_came(weights)
            self._batches.roles = step.reading.roles
            self._batches.add(self.steps + 1, args, kwargs, looked=self._look is not None)

    @contained
    def hear_compiled(self, step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if not self._is_mine(step.reading.code, compiled_weights(step, args, kwargs)):
            return
        self._losses = losses_in(compiled_loss(step, result))
        self._story.calls.say("step")
        self._prove_compiled(step, compiled_weights(step, args, kwargs))

    def _prove_compiled(self, step: patches.Compiled, weights: Named) -> None:
        """Once, at a step that is looked at: its loss is computed anyway."""
        tape = step.reading.tape
        if self._keeper is None or self._look is None or tape is None or not self._losses:
            return
        value = float(self._losses[0].item())
        if self._keeper.parted is not None:
            self._keeper.again(self.steps + 1, weights, value)
            return
        found = parted(tape, step.reading.own_roles, None)
        tape.forget(set(), compiled=True)
        self._prove(found, step.reading.own_roles, self.steps + 1, weights, value)

    def _prove(self, found: Parted, roles: Roles | None, step: int, weights: Named, value: float) -> None:
        assert self._keeper is not None
        assert self.model is not None
        self._keeper.prove(found, step, weights, value)
        last = None if found.loss is None else found.loss.tape.maker(found.loss.result)
        if last is not None and roles is not None and self._valuing is None:
            self._valuing = Valuing(last, self.model.code, roles, lambda: self.steps)

    def _is_mine(self, code: Any, weights: Named) -> bool:
        return self.model is not None and code is self.model.code and self.model.fits(weights)

    def _weights_came(self, weights: Named) -> None:
        """For another gradient: of a new step, or one more of the same."""
        assert self.model is not None
        if self._valuing is not None:
            self._valuing.settle()
        self._waiting.decide_last()
        if self._weights is not None and (self.model.in_place or self._applied or not same(self._weights, weights)):
            self._end_step(weights)
        self._weights, self._applied = weights, False
        self.restarts.weights_came(weights)
        if self._look is None and self._pace.looks_at(self.steps):
            self.model.hold(weights)
            self._look = full_look.Look(before={name: mx.array(a) for name, a in weights.items()})

    def _end_step(self, after: Named | None) -> None:
        now = time.perf_counter()
        self.steps += 1
        look, self._look = self._look, None
        if "step" not in self._story.calls.counts:
            self._story.calls.say("step")
        found = (self._memory.after_step(self.steps), self._graphs.after_step(self.steps))
        notes: list[Observation] = [*self._story.notes, *(o for o in found if o is not None)]
        looked = look is not None and after is not None and self._looked(look, after, notes)
        optimiser = None if self._optimiser is None else self._optimiser()
        record = Record(
            self.steps,
            0,
            tuple(self._losses),
            None if not looked or optimiser is None else rate_of(optimiser),
            tuple(self._story.calls.names),
            dict(self._story.calls.counts),
            self._clock.since(now),
            tuple(notes),
            batches=self._batches.take() if looked else (),
            state="computed" if looked else "new",
        )
        self._losses = []
        self._story.clear()
        self._waiting.add(record)
        self._waiting.decide_last()
        self._waiting.hand_on(0 if looked else LAG)
        seconds, own = self._clock.step_ended(now, self.own_seconds)
        self._pace.step_ended(self.steps, seconds, looked=looked, own_seconds=own)

    def _looked(self, look: full_look.Look, after: Named, notes: list[Observation]) -> bool:
        assert self.model is not None
        look.losses, look.after = list(self._losses), dict(after)
        look.held = list(self._waiting.held_losses())
        # Of several gradients nobody knows what became of them.
        look.gradients = look.raw if self._story.calls.counts.get("backward") == 1 else {}
        if not look.compute():
            self._losses = []
            return False
        self._waiting.computed()
        notes += full_look.observations(look, self.steps, self.model, 0)
        if look.raw:
            self._reach.after(look.raw, look.hearings)
        self._waiting.learn(look.loss_bytes())
        if self._tape is not None and self._batches.roles is None:
            self._batches.roles = roles_of(self._tape)
            if self._keeper is not None and len(self._losses) == 1:
                value = float(self._losses[0].item())
                found = parted(self._tape, self._batches.roles, value)
                self._prove(found, self._batches.roles, self.steps, look.before, value)
            self._tape.forget(set())
        elif self._keeper is not None and self._tape is not None and len(self._losses) == 1:
            self._keeper.again(self.steps, look.before, float(self._losses[0].item()))
        self._batches.settle()
        if self._valuing is not None:
            self._valuing.looked()
        self.looks += 1
        return True

    def _broken(self, step: int, value: float) -> Iterator[Observation]:
        found = list(self._recent.broken(step, value, self.model))
        yield from found
        if found and not any(isinstance(o, Origin) for o in found):
            yield from self._batches.not_finite(step)


def compiled_weights(step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, mx.array]:
    """Those that are there."""
    known = dict(arrays_by_path((args, kwargs)))
    found = {name: known.get(path) for name, path in step.reading.weights.items()}
    return {name: array for name, array in found.items() if isinstance(array, mx.array)}


def compiled_loss(step: patches.Compiled, result: Any) -> Any:
    return dict(arrays_by_path(result)).get(step.reading.loss or "none")


def _again(model: Tree, taken: patches.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The user's function, of the weights that the tree holds."""
    assert taken.fun is not None
    return taken.fun(*taken.with_learned(args, model.as_given()), **kwargs)
