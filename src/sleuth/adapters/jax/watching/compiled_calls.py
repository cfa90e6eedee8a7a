"""Calls of the user's compiled functions: decides for each which of its two executables runs, and tells what came of it."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from sleuth.adapters.jax.watching.channel import Channel, Part
from sleuth.adapters.jax.watching.executables import NO_GRADIENT, Arguments, Compiled, leaf_at
from sleuth.adapters.jax.watching.gradient_patches import HEARING
from sleuth.adapters.jax.watching.layer_places import inherit
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.jax.watching.scanning import one_of
from sleuth.adapters.jax.watching.unoptimised_weights import holding, left_out, updated_at
from sleuth.adapters.listening.patches import attempt, carries_call, speak_up
from sleuth.core.observation import Call
from sleuth.core.observation.calls import CallKind

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.hub import Hub
    from sleuth.adapters.jax.watching.listener import JaxListener

COMBINED = (
    "the step has effects (a print, a callback), so steps that are looked at run a form of it that returns statistics as well: "
    "XLA does not promise that its last bits are the same"
)
# Functions that have been called once, and may be whole trainings: only the last of them are kept in mind.
MOST_SINGLE = 4
SHORT_SECONDS = 15.0


class Prepared(NamedTuple):
    owner: "JaxListener"
    looked: bool
    awaited: bool  # how long it takes is to be learnt


class CompiledCalls:
    """`call` and what it calls by itself stand between the user and JAX: everything else there is attempted."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._once: deque[tuple[float, Compiled]] = deque(maxlen=MOST_SINGLE)  # called for the first time, and when

    def forget(self) -> None:
        self._once.clear()

    @carries_call
    def call(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if HEARING.busy or step.silent is not None:
            return step.plain(*args, **kwargs)
        if HEARING.collector is not None:  # ours: whoever traces a second form catches what goes wrong
            return step.within(args, kwargs, HEARING.collector)
        if not _is_clean():
            if step.is_learner and HEARING.marked is not None:
                HEARING.marked.has_parts = True
            return step.plain(*args, **kwargs)
        if step.is_known:
            attempt(self._hub.failed, step.look_into, (args, kwargs))
        if step.has_parts:
            return self._call_step(step, (args, kwargs))
        outer, HEARING.marked = HEARING.marked, step
        try:
            output = step.plain(*args, **kwargs)
        finally:
            HEARING.marked = outer
        attempt(self._hub.failed, self._called_first, step, (args, kwargs), output)
        return output

    @carries_call
    def _call_step(self, step: Compiled, given: Arguments) -> Any:
        """Of a function in which gradients were met."""
        args, kwargs = given
        began = time.perf_counter()
        prepared = attempt(self._hub.failed, self._prepare, step, given)
        if prepared is None:
            output = step.plain(*args, **kwargs)
            attempt(self._hub.failed, self._unheard, step)
            return output
        if prepared.awaited:
            attempt(self._hub.failed, _wait, given)
        attempt(self._hub.failed, self._keep, step, given)
        form = attempt(self._hub.failed, step.form_for, given) if prepared.looked else None
        called = time.perf_counter()
        if form is not None and form.look is None:
            count = attempt(self._hub.failed, form.counted, given)
            output, told = step.told(*args, **kwargs)
            channel = attempt(self._hub.failed, _measured, told, count)
            attempt(self._hub.failed, prepared.owner.remark, COMBINED)
        else:  # to look comes first: the plain one may take the memory of its arguments
            channel = None if form is None else attempt(self._hub.failed, step.look, form, given)
            output = step.plain(*args, **kwargs)
        if prepared.awaited:
            attempt(self._hub.failed, _wait, (output, channel))
        attempt(self._hub.failed, self._called, step, prepared, (began, called), given, output, channel)
        speak_up((prepared.owner,))
        return output

    def _called(
        self, step: Compiled, how: Prepared, times: tuple[float, float], given: Arguments, output: Any, channel: Channel | None
    ) -> None:
        returned, (began, called), owner, looked = time.perf_counter(), times, how.owner, how.looked
        if how.awaited:
            owner.awaited.took(returned - called, looked=looked)
        self._note(step, given, output, channel)
        compiling = returned - called if looked and step.runs[True] == 0 else 0.0
        owner.measured_seconds += called - max(began, owner.born) + compiling + time.perf_counter() - returned
        step.runs[looked] += 1
        self._unheard(step, (owner,))

    def _unheard(self, step: Compiled, listeners: "Sequence[JaxListener] | None" = None) -> None:
        """Of a step that the user's own call has run to its end: what we made of it could not be."""
        if step.silent is None or step.silent == NO_GRADIENT:
            return
        for listener in self._hub.listeners if listeners is None else listeners:
            listener.remark(f"a compiled step could not be listened to: {step.silent}")

    def _called_first(self, step: Compiled, given: Arguments, output: Any) -> None:
        """Of a function of which nothing was known: were gradients met in it?"""
        if step.has_parts:
            step.first, step.first_given = output, given
            self._once.append((time.perf_counter(), step))
            return
        step.first = step.first_given = None
        for listener in self._hub.listeners:
            listener.called(*given)

    def hear_single_calls(self) -> None:
        """At the end of a script. A function that was called once may have been the whole training, where a loop is inside it."""
        waiting, self._once = list(self._once), deque(maxlen=MOST_SINGLE)
        for called, step in waiting:
            attempt(self._hub.failed, self._hear_single, called, step)

    def _hear_single(self, called: float, step: Compiled) -> None:
        given = step.first_given
        if step.first is None or given is None:  # it was called again
            return
        if (step.parts or step.is_ready(given)) and any(part.times for part in step.parts):
            # To look at it is to train once more.
            self._find_owners(step, given, looks=time.perf_counter() - called <= SHORT_SECONDS)

    def _prepare(self, step: Compiled, given: Arguments) -> Prepared | None:
        """None: nobody listens to this call."""
        if not step.parts and not step.is_ready(given):
            return None
        if not step.owners or any(owner is not None and owner.is_closed for owner in step.owners):
            self._find_owners(step, given)
        heard = zip(step.owners, step.parts, strict=True)
        looked = any(owner is not None and owner.is_due(part) for owner, part in heard) and step.is_ready(given)
        # To make it ready may have traced a form for arguments of another kind: whose it is, the next call finds out.
        owner = next((owner for owner in step.owners if owner is not None), None)
        if owner is None or owner.gave_up is not None:
            return None
        return Prepared(owner, looked, step.runs[looked] > 0 and owner.awaited.wants(looked=looked))

    def _find_owners(self, step: Compiled, given: Arguments, *, looks: bool = True) -> None:
        step.owners = []
        for part in step.parts:  # in their order: an update belongs to whoever has the gradient
            inherit(_weights(part, step.first_given), _weights(part, given))
            step.owners.append(self._owner(step, part, _weights(part, given)))
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

    def _owner(self, step: Compiled, part: Part, weights: list[Any] | None) -> "JaxListener | None":
        left = left_out(part, step.parts) if part.is_gradient and step.keeps_its_arguments else ()
        optimiser = holding(step.optimiser, left) if left and step.optimiser else step.optimiser
        owner = self._hub.owner(part, weights, optimiser)
        if owner is not None and left and step.optimiser:
            owner.optimiser = optimiser
            owner.say(Call(CallKind.CHOSEN_PARAMETERS, owner.steps, updated_at(step.parts)))
        if owner is not None and part.is_gradient:
            owner.begin(part.lane, step.order[part])
            place = owner.called_at = users_line()
            # The line that calls the step is the one that gives it its batch.
            owner.say(*(Call(kind, owner.steps, place) for kind in (CallKind.STEP, CallKind.BATCH)))
            owner.say(Call(CallKind.BACKWARD, owner.steps, step.backward))
            if step.deaf_inside is not None:
                owner.remark(f"what happens inside the loss of the step could not be listened to: {step.deaf_inside}")
        return owner

    def _keep(self, step: Compiled, given: Arguments | None) -> None:
        """Before the step is run."""
        owner = next((owner for owner in step.owners if owner is not None), None)
        if owner is None or owner.passing is None or given is None:
            return
        try:
            owner.optimiser = owner.optimiser or step.optimiser
            owner.passing.take(owner.coming, step, given)
        except Exception as error:
            owner.remark(f"what passed by was not kept: {type(error).__name__}: {error}")
            owner.passing = None

    def _note(self, step: Compiled, given: Arguments | None, output: Any, channel: Channel | None) -> None:
        rounds = max((part.times for part in step.parts), default=0)
        for number in range(rounds):
            self._note_round(step, given, output, channel, number, rounds)
        if rounds:
            return
        for number, (owner, part) in enumerate(zip(step.owners, step.parts, strict=True)):
            if owner is None:
                continue
            loss, look = _told(channel, number)
            if not part.is_gradient:
                owner.update(part.lane, look)
                owner.returned(part.lane, partial(_weights, _gradient_of(step.parts, part), given))
                continue
            if channel is None and part.loss is not None:
                loss = leaf_at(output, part.loss)
            owner.gradient(part.lane, loss, look, partial(_weights, part, given), channel)
            owner.remember(loss, step, given, looked=look is not None)

    def _note_round(
        self, step: Compiled, given: Arguments | None, output: Any, channel: Channel | None, at: int, rounds: int
    ) -> None:
        """One step of those that a loop inside the compiled function takes."""
        for number, (owner, part) in enumerate(zip(step.owners, step.parts, strict=True)):
            if owner is None or not part.times:
                continue
            loss, measured = _told(channel, number)
            look = None if measured is None else tuple(one_of(value, at) for value in measured)
            if not part.is_gradient:
                owner.update(part.lane, look)
                continue
            if channel is None and part.loss is not None:
                loss = leaf_at(output, part.loss)
            owner.rounds = rounds
            owner.gradient(part.lane, one_of(loss, at, scalar=True), look, lambda: None)
            if at == rounds - 1:
                owner.remember(one_of(loss, at, scalar=True), step, given)


def _told(channel: Channel | None, number: int) -> tuple[Any, Any]:
    """Of one part of a step: its loss, and what was measured."""
    if channel is None:
        return None, None
    loss, *measured = channel.values[number]
    return loss, tuple(measured)


def _measured(told: Channel, count: Any) -> Channel:
    return replace(told.measured(), count=count)


def _gradient_of(parts: Sequence[Part], update: Part) -> Part:
    return next((part for part in parts if part.is_gradient and part.lane.shapes == update.lane.shapes), update)


def _weights(part: Part, given: Arguments | None) -> list[Any] | None:
    if given is None or not part.places:
        return None
    leaves = jax.tree_util.tree_leaves(given)
    return [leaves[place] for place in part.places]


def _wait(values: Any) -> None:
    with suppress(Exception):  # an error of the user's own comes again where the value is used
        jax.block_until_ready(values)


def _no_word() -> bool:
    return True


# JAX does not say in public whether something is being traced.
_is_clean: Callable[[], bool] = getattr(getattr(getattr(jax, "_src", None), "core", None), "trace_state_clean", _no_word)
