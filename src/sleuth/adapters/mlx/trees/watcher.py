"""One watch of a training of a tree. A step is over when the next gradient is taken of other weights."""

import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.patches import attempt
from sleuth.adapters.listening.recorder import observations_of
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.adapters.mlx.trees.batches import TreeBatches
from sleuth.adapters.mlx.trees.candidates import losses_in
from sleuth.adapters.mlx.trees.kept_training import TreeKeeper
from sleuth.adapters.mlx.trees.new_trainings import Restarts
from sleuth.adapters.mlx.trees.roles import Roles, roles_of
from sleuth.adapters.mlx.trees.split_model_loss import Parted, parted
from sleuth.adapters.mlx.trees.tree import Named, Tree, named, same
from sleuth.adapters.mlx.trees.validation_loss import Valuing
from sleuth.adapters.mlx.watching.batches import arrays_by_path, settled
from sleuth.adapters.mlx.watching.compiled import Compiled
from sleuth.adapters.mlx.watching.differentiated import Differentiated
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.adapters.mlx.watching.pending_steps import Record
from sleuth.adapters.mlx.watching.step_watcher import Batches, StepWatcher
from sleuth.adapters.mlx.watching.tape import Tape
from sleuth.adapters.mlx.watching.unreached_parameters import UnreachedParameters
from sleuth.core.observation import Observation, Origin, Pending
from sleuth.core.observation.calls import CallKind

COMPILED = "the step is compiled: of what happens inside it the weights, what it is given and its loss were seen"


class TreeWatcher(StepWatcher):
    model: Tree | None
    _is_decided_at_once = True

    def __init__(
        self, model: Tree, put: Callable[[Record], None], *, every: int | None, overhead: float, keeps: bool = False
    ) -> None:
        self.restarts = Restarts()
        put_heard = lambda record: put(self.restarts.heard(record))  # noqa: E731
        super().__init__(model, put_heard, (UnreachedParameters(),), every=every, overhead=overhead)
        self._batches = TreeBatches(keeps=keeps)
        self._keeper = TreeKeeper() if keeps else None
        self._valuing: Valuing | None = None
        self._tape: Tape | None = None
        self._weights: Named | None = None  # of the last gradient
        self._applied = False  # an optimiser of MLX's own has made others of them since
        self._optimiser: weakref.ref[Optimizer] | None = None

    def close(self) -> None:
        if self._valuing is not None:
            attempt(partial(self.hear_lost, "the last validation was lost"), self._valuing.close)
        super().close()
        self._weights = self._tape = None

    def _before_end(self) -> None:
        if self._weights is not None and self._calls:  # how its step ended nobody knows
            self._look = None
            self._stepped(None)

    def _at_end(self, model: nn.Module) -> Iterator[Observation]:
        assert isinstance(model, Tree)
        self._batches.settle()
        self._batches.clear()
        self.left = self._batches.take()
        self._recorders.tell("ended", model, None)
        yield from observations_of(self._recorders.take())
        yield from self._calls.places.values()
        if self._keeper is not None:
            train = settled(self._batches.reservoir)
            self.kept = self._keeper.kept(model, train, [] if self._valuing is None else self._valuing.groups())
            yield from () if self._valuing is None else self._valuing.evaluations(train)
        counts: dict[str, int] = {"backward": self.backwards, "forward": self.backwards} if self.backwards else {}
        yield Pending(self.steps, (), counts, 0, {})

    @contained
    def begin_with(self, weights: Named, gradients: Named, losses: list[mx.array]) -> None:
        """The step before, which showed that this is a training."""
        if self._keeper is not None:
            self._keeper.start(weights)
        self._weights, self._losses = weights, list(losses)
        self._look = Look(before=dict(weights), raw=dict(gradients))
        self._calls.say(CallKind.FORWARD)
        self._calls.say(CallKind.BACKWARD)

    @contained
    def hear_gradient_begin(self, taken: Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        weights = named(taken.learned(args)) if taken.model is None else {}
        if not self._is_mine(taken.code, weights):
            return
        assert self.model is not None
        self._weights_came(weights)
        again = None if taken.fun is None else partial(_again, self.model, taken, args, kwargs)
        # Others of the same values, where the user writes into his own.
        held = {name: mx.array(a) for name, a in weights.items()} if self.model.in_place else weights
        self._recent.add(self.steps, held, again, (args, kwargs))
        self._calls.say_at(CallKind.FORWARD, self.steps)
        self._batches.add(self.steps, taken.fed(args), kwargs, looked=self._look is not None)
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
    def hear_gradient(self, taken: Differentiated, value: Any, gradients: Any) -> None:
        found = named(gradients) if taken.model is None else {}
        if not self._is_mine(taken.code, found):
            return
        self._hearing.close()
        self.backwards += 1
        self._calls.say_at(CallKind.BACKWARD, self.steps)
        self._losses += losses_in(value)
        if self._look is not None:
            self._look.raw = found
            self._recorders.tell("gradients", found)

    @contained
    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if self.model is not None and self.model.fits(named(gradients)):
            self._optimiser = weakref.ref(optimiser)
            self._calls.say_at(CallKind.STEP, self.steps)
            self._applied = True
            if self._keeper is not None:
                self._keeper.optimiser(optimiser)

    @contained
    def hear_compiled_begin(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        weights = compiled_weights(step, args, kwargs)
        if self._is_mine(step.reading.code, weights):
            self.remark(COMPILED)
            self._weights_came(weights)
            self._batches.roles = step.reading.roles
            self._batches.add(self.steps, args, kwargs, looked=self._look is not None)

    @contained
    def hear_compiled(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        weights = compiled_weights(step, args, kwargs)
        if self._is_mine(step.reading.code, weights):
            self._losses = losses_in(compiled_loss(step, result))
            self._calls.say(CallKind.STEP)
            self._prove_compiled(step, weights)

    def _prove_compiled(self, step: Compiled, weights: Named) -> None:
        """Once, at a step that is looked at: its loss is computed anyway."""
        tape = step.reading.tape
        if self._keeper is None or self._look is None or tape is None or not self._losses:
            return
        value = float(self._losses[0].item())
        if self._keeper.parted is not None:
            self._keeper.again(self.steps, weights, value)
            return
        found = parted(tape, step.reading.own_roles, None)
        tape.forget(set(), compiled=True)
        self._prove(found, step.reading.own_roles, weights, value)

    def _prove(self, found: Parted, roles: Roles | None, weights: Named, value: float) -> None:
        assert self._keeper is not None
        assert self.model is not None
        self._keeper.prove(found, self.steps, weights, value)
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
        self._pending.decide_last()
        if self._weights is not None and (self.model.in_place or self._applied or not same(self._weights, weights)):
            self._stepped(weights)
        self._weights, self._applied = weights, False
        self.restarts.weights_came(weights)
        if self._look is None and self._pace.looks_at(self.steps):
            self.model.hold(weights)
            self._look = Look(before={name: mx.array(a) for name, a in weights.items()})

    def _stepped(self, after: Named | None) -> None:
        if not self._calls.count(CallKind.STEP):
            self._calls.say(CallKind.STEP)
        if self._look is not None and self._calls.count(CallKind.BACKWARD) == 1:
            self._look.gradients = self._look.raw  # of several nobody knows what became of them
        optimiser = None if self._optimiser is None else self._optimiser()
        self._end_step(optimiser, 0, None if after is None else lambda: dict(after), [])

    def _looked(self, look: Look, optimiser: Optimizer | None, number: int, notes: list[Observation]) -> LookCopy | None:
        copy = super()._looked(look, optimiser, number, notes)
        if copy is None:
            return None
        if self._tape is not None and self._batches.roles is None:
            self._batches.roles = roles_of(self._tape)
            if self._keeper is not None and len(self._losses) == 1:
                value = float(self._losses[0].item())
                self._prove(parted(self._tape, self._batches.roles, value), self._batches.roles, look.before, value)
            self._tape.forget(set())
        elif self._keeper is not None and self._tape is not None and len(self._losses) == 1:
            self._keeper.again(self.steps, look.before, float(self._losses[0].item()))
        self._batches.settle()
        if self._valuing is not None:
            self._valuing.looked()
        return copy

    def _take_batches(self) -> Batches:
        return self._batches.take()

    def _loss_not_finite(self, step: int, value: float) -> Iterable[Observation]:
        found = list(super()._loss_not_finite(step, value))
        given = bool(found) and not any(isinstance(o, Origin) for o in found)
        return [*found, *self._batches.not_finite(step)] if given else found


def compiled_weights(step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, mx.array]:
    """Those that are there."""
    known = dict(arrays_by_path((args, kwargs)))
    found = {name: known.get(path) for name, path in step.reading.weights.items()}
    return {name: array for name, array in found.items() if isinstance(array, mx.array)}


def compiled_loss(step: Compiled, result: Any) -> Any:
    return dict(arrays_by_path(result)).get(step.reading.loss or "none")


def _again(model: Tree, taken: Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The user's function, of the weights that the tree holds."""
    assert taken.fun is not None
    return taken.fun(*taken.with_learned(args, model.as_given()), **kwargs)
