"""Between JAX and whoever listens: decides for each call of a compiled function which of its two executables runs."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import jax

from sleuth.adapters.jax.watching.channel import GRADIENT, Channel, Lane, Part
from sleuth.adapters.jax.watching.executables import Arguments, Compiled, leaf_at
from sleuth.adapters.jax.watching.gradient_patches import HEARING
from sleuth.adapters.jax.watching.layer_places import inherit
from sleuth.adapters.jax.watching.measuring import measure_changes, measure_now
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.jax.watching.patches import Patches
from sleuth.adapters.jax.watching.scanning import one_of
from sleuth.adapters.jax.watching.seen_batches import Taken
from sleuth.adapters.jax.watching.unoptimised_weights import holding, left_out, updated_at
from sleuth.core.location import Location
from sleuth.core.observation import Call

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.watcher import Watcher


COMBINED = (
    "the step has effects (a print, a callback), so steps that are looked at run a form of it that returns statistics as well: "
    "XLA does not promise that its last bits are the same"
)
# Frames are searched for the optimiser of updates that are applied at once, and only so often. A gradient that is compiled is
# known from its second call on.
FIRST_STEPS = 4
# Functions that have been called once, and may be whole trainings: only the last of them are kept in mind.
MOST_SINGLE = 4
SHORT_SECONDS = 15.0


class Discoverer(Protocol):
    def begin(self, lane: Lane, weights: list[Any] | None, optimiser: Any = None) -> "Watcher | None": ...

    def give_up(self, error: Exception) -> None: ...


class Hub:
    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self.discoverer: Discoverer | None = None
        self._patches = Patches(self)
        self._once: deque[tuple[float, Compiled]] = deque(maxlen=MOST_SINGLE)  # called for the first time, and when

    def join(self, watcher: "Watcher") -> None:
        self.watchers.append(watcher)
        self._arrange()

    def leave(self, watcher: "Watcher") -> None:
        self.watchers = [w for w in self.watchers if w is not watcher]
        self._arrange()

    def discover(self, discoverer: Discoverer | None) -> None:
        self.discoverer = discoverer
        self._arrange()

    def forget(self) -> None:
        """In a child made by fork: nobody drains there."""
        self.watchers, self.discoverer = [], None
        self._once.clear()
        self._arrange()

    def _arrange(self) -> None:
        wanted = bool(self.watchers) or self.discoverer is not None
        Compiled.call = self.call if wanted else None
        if wanted:
            self._patches.open()
        else:
            self._patches.close()

    def failed(self, error: Exception) -> None:
        for watcher in self.watchers:
            watcher.give_up(error)
        if self.discoverer is not None:
            self.discoverer.give_up(error)

    def state_begun(self, optimiser: Any, place: Location) -> None:
        if HEARING.collector is not None:
            HEARING.collector.begun = (optimiser.update, place)
            return
        for watcher in self.watchers:
            watcher.begun.note(watcher.steps, place)

    def owner(self, part: Part, weights: list[Any] | None, optimiser: Any = None) -> "Watcher | None":
        for watcher in self.watchers:
            if watcher.takes(part):
                return watcher
        if self.discoverer is None or part.single or not part.is_gradient:
            return None
        return self.discoverer.begin(part.lane, weights, optimiser)

    # Compiled functions.

    def call(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if HEARING.busy or step.silent is not None:
            return step.plain(*args, **kwargs)
        if HEARING.collector is not None:
            return step.within(args, kwargs, HEARING.collector)
        if not _is_clean():
            if step.is_learner and HEARING.marked is not None:
                HEARING.marked.has_parts = True
            return step.plain(*args, **kwargs)
        if step.is_known:
            step.look_into((args, kwargs))
        if step.has_parts:
            return self._listen(step, (args, kwargs))
        outer, HEARING.marked = HEARING.marked, step
        try:
            output = step.plain(*args, **kwargs)
        finally:
            HEARING.marked = outer
        step.first = output if step.has_parts else None
        step.first_given = (args, kwargs) if step.has_parts else None
        if not step.has_parts:
            self._called(args, kwargs)
        else:
            self._once.append((time.perf_counter(), step))
        return output

    def hear_single_calls(self) -> None:
        """At the end of a script. A function that was called once may have been the whole training, where a loop is inside it."""
        waiting, self._once = list(self._once), deque(maxlen=MOST_SINGLE)
        for called, step in waiting:
            given = step.first_given
            if step.first is None or given is None:  # it was called again
                continue
            try:
                if (step.parts or step.is_ready(given)) and any(part.times for part in step.parts):
                    # To look at it is to train once more.
                    self._find_owners(step, given, looks=time.perf_counter() - called <= SHORT_SECONDS)
            except Exception as error:
                self.failed(error)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            for watcher in self.watchers:
                watcher.called((args, kwargs))
        except Exception as error:
            self.failed(error)

    def _listen(self, step: Compiled, given: Arguments) -> Any:
        began = time.perf_counter()
        looked = self._prepare(step, given)
        owner = next((owner for owner in step.owners if owner is not None), None)
        if owner is None:
            return step.plain(*given[0], **given[1])
        timed = step.runs[looked] > 0 and owner.pace.wants_time(looked=looked)
        if timed:
            jax.block_until_ready(given)
        self._keep(step, given)
        called = time.perf_counter()
        output, channel = step.run(given, look=looked)
        if timed:
            jax.block_until_ready((output, channel))
        returned = time.perf_counter()
        if timed:
            owner.pace.took(returned - called, looked=looked)
        if looked and step.runs_combined:
            owner.say(COMBINED)
        self._note(step, given, output, channel)
        compiled = returned - called if looked and step.runs[True] == 0 else 0.0
        owner.measured_seconds += called - max(began, owner.born) + compiled + time.perf_counter() - returned
        step.runs[looked] += 1
        owner.speak_up()
        return output

    def _prepare(self, step: Compiled, given: Arguments) -> bool:
        """Is this call to be looked at?"""
        try:
            if not step.parts and not step.is_ready(given):
                return False
            if not step.owners or any(owner is not None and owner.is_closed for owner in step.owners):
                self._find_owners(step, given)
            heard = zip(step.owners, step.parts, strict=True)
            return any(owner is not None and owner.is_due(part) for owner, part in heard) and step.is_ready(given)
        except Exception as error:
            self.failed(error)
            return False

    def _find_owners(self, step: Compiled, given: Arguments, *, looks: bool = True) -> None:
        step.owners = []
        for part in step.parts:  # in their order: an update belongs to whoever has the gradient
            inherit(_weights(part, step.first_given), _weights(part, given))
            left = left_out(part, step.parts) if part.is_gradient and step.keeps_its_arguments else ()
            optimiser = holding(step.optimiser, left) if left and step.optimiser else step.optimiser
            owner = self.owner(part, _weights(part, given), optimiser)
            if owner is not None and left and step.optimiser:
                owner.optimiser = optimiser
                owner.tripwire.found.append(Call("chosen-parameters", owner.steps, updated_at(step.parts)))
            if owner is not None and part.is_gradient:
                owner.begin(part.lane, step.order[part])
                place = owner.called_at = users_line()
                # The line that calls the step is the one that gives it its batch.
                owner.tripwire.found += [Call(kind, owner.steps, place) for kind in ("step", "batch")]
                owner.tripwire.found.append(Call("backward", owner.steps, step.backward))
            step.owners.append(owner)
        steps = [(owner, part) for owner, part in zip(step.owners, step.parts, strict=True) if part.is_gradient]
        if len(steps) == 1 and steps[0][0] is not None and not steps[0][1].times:
            steps[0][0].begins_inside = step.begun
        if step.first is not None:  # it was called before anything was known of it
            first, step.first = step.first, None
            before, step.first_given = step.first_given, None
            self._keep(step, before)
            due = looks and any(owner is not None and owner.pace.looks_at(0) for owner in step.owners)
            channel = step.looked_back(before) if due and before is not None else None
            self._note(step, before if channel is not None else None, first, channel)

    def _keep(self, step: Compiled, given: Arguments | None) -> None:
        """Before the step is run."""
        owner = next((owner for owner in step.owners if owner is not None), None)
        if owner is None or owner.passing is None or given is None:
            return
        try:
            owner.optimiser = owner.optimiser or step.optimiser
            owner.passing.take(owner.coming, step, given)
        except Exception as error:
            owner.say(f"what passed by was not kept: {type(error).__name__}: {error}")
            owner.passing = None

    def _note(self, step: Compiled, given: Arguments | None, output: Any, channel: Channel | None) -> None:
        try:
            rounds = max((part.times for part in step.parts), default=0)
            for number in range(rounds):
                self._note_round(step, given, output, channel, number, rounds)
            if rounds:
                return
            for number, (owner, part) in enumerate(zip(step.owners, step.parts, strict=True)):
                if owner is None:
                    continue
                loss, *measured = (None, None) if channel is None else channel.values[number]
                if not part.is_gradient:
                    owner.update(part.lane, tuple(measured) if channel is not None else None)
                    owner.returned(part.lane, partial(_weights, _gradient_of(step.parts, part), given))
                    continue
                if channel is None and part.loss is not None:
                    loss = leaf_at(output, part.loss)
                look = tuple(measured) if channel is not None else None
                weights = partial(_weights, part, given)
                owner.gradient(part.lane, loss, look, weights, channel)
                owner.remember(loss, step, given, looked=look is not None)
        except Exception as error:
            self.failed(error)

    def _note_round(
        self, step: Compiled, given: Arguments | None, output: Any, channel: Channel | None, at: int, rounds: int
    ) -> None:
        """One step of those that a loop inside the compiled function takes."""
        for number, (owner, part) in enumerate(zip(step.owners, step.parts, strict=True)):
            if owner is None or not part.times:
                continue
            loss, *measured = (None, None) if channel is None else channel.values[number]
            look = tuple(one_of(value, at) for value in measured) if channel is not None else None
            if not part.is_gradient:
                owner.update(part.lane, look)
                continue
            if channel is None and part.loss is not None:
                loss = leaf_at(output, part.loss)
            owner.rounds = rounds
            owner.gradient(part.lane, one_of(loss, at, scalar=True), look, lambda: None)
            if at == rounds - 1:
                owner.remember(one_of(loss, at, scalar=True), step, given)

    # What is computed at once, without a compiled step around it.

    def eager_gradient(
        self, lane: Lane, weights: list[Any], loss: Any, gradients: list[Any], *, single: bool, taken: Taken | None = None
    ) -> None:
        part = Part(GRADIENT, lane, single=single)
        owner = self.owner(part, weights)
        if owner is None:
            return
        owner.begin(lane, list(range(len(lane.names))))
        look = measure_now([*gradients, *weights]) if owner.is_due(part) else None
        if owner.passing is not None and taken is not None:
            owner.passing.take_eager(owner.coming, taken, lane.names)
        owner.gradient(lane, loss, look, lambda: weights)

    def eager_update(self, lane: Lane, before: list[Any], after: list[Any], optimiser: Callable[[], Any] = lambda: None) -> None:
        owner = next((w for w in self.watchers if w.knows(lane)), None)
        if owner is not None:
            if owner.optimiser is None and owner.steps < FIRST_STEPS:
                owner.optimiser = optimiser()
            owner.updated(lane, before)
            owner.update(lane, measure_changes(before, after) if owner.is_looking(lane) else None)

    def speak_up(self) -> None:
        """After what is computed at once: where the user asked for it, something of ours may raise here."""
        for watcher in list(self.watchers):
            watcher.speak_up()


def _gradient_of(parts: Sequence[Part], update: Part) -> Part:
    return next((part for part in parts if part.is_gradient and part.lane.shapes == update.lane.shapes), update)


def _weights(part: Part, given: Arguments | None) -> list[Any] | None:
    if given is None or not part.places:
        return None
    leaves = jax.tree_util.tree_leaves(given)
    return [leaves[place] for place in part.places]


def _no_word() -> bool:
    return True


# JAX does not say in public whether something is being traced.
_is_clean: Callable[[], bool] = getattr(getattr(getattr(jax, "_src", None), "core", None), "trace_state_clean", _no_word)

HUB = Hub()
