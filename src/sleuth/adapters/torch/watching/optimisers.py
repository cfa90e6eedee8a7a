"""Who writes into the model. Optimisers are held weakly: one that the user lets go must take its state along."""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from sleuth.adapters.torch.watching.created_at import made_at
from sleuth.adapters.torch.watching.gradient_states import GradientStates
from sleuth.adapters.torch.watching.weights import Weights
from sleuth.core.location import Location
from sleuth.core.observation import Optimiser

# Whoever keeps one optimiser a parameter is not followed into each of them.
MOST_MET = 16


class Held:
    """What is known of one optimiser. It outlives the optimiser only until the next one comes."""

    def __init__(self, optimiser: Optimizer, names: Mapping[int, str], number: int, *, given: bool) -> None:
        self.ref = weakref.ref(optimiser)
        self.number, self.given = number, given
        self.kind = type(optimiser).__name__
        self.weights = Weights(optimiser, names, number)
        self.states = GradientStates(self.weights.parameters)
        self.steps = 0
        self.passes = 0  # over the training data, while it stepped
        self.seen: Optimiser | None = None
        self.carried = bool(optimiser.state)
        self.rewritten = False
        self.written: tuple[int, int] | None = None  # the version of the weights after its last step

    def shares(self, other: "Held") -> int:
        mine = {id(p) for p in self.weights.parameters}
        return sum(id(p) in mine for p in other.weights.parameters)


class Optimisers(Sequence[Any]):
    """By number, in the order in which they came; None for one that is gone."""

    def __init__(self, model: nn.Module, given: Sequence[Optimizer]) -> None:
        self._model = model
        self._refs: list[weakref.ref[Optimizer]] = []
        self._known: dict[int, tuple[weakref.ref[Optimizer], Held | None]] = {}  # None: it holds nothing of the model
        self._held: list[Held] = []
        # As long as nobody is known who holds any of it: did a backward reach the model at all?
        self._orphaned: GradientStates | None = GradientStates(list(model.parameters()))
        self._unshaped = any(is_lazy(p) for p in model.parameters())
        self._latest: Held | None = None  # that stepped
        self._fresh_pass = False
        self._made: dict[int, tuple[weakref.ref[Optimizer], Location | None]] = {}
        for optimiser in given:
            self._hold(optimiser, given=True)

    def __len__(self) -> int:
        return len(self._refs)

    def __getitem__(self, number: Any) -> Any:
        return [ref() for ref in self._refs[number]] if isinstance(number, slice) else self._refs[number]()

    @property
    def states(self) -> list[GradientStates]:
        if self._unshaped:
            self._take_shape()
        held = [held.states for held in self._held]
        return held if self._orphaned is None else [self._orphaned, *held]

    @property
    def held(self) -> list[Held]:
        return self._held

    def is_foreign(self, optimiser: Any) -> bool:
        """Is it known to hold nothing of the model?"""
        ref, held = self._known.get(id(optimiser), (None, None))
        return ref is not None and ref() is optimiser and held is None

    def known(self, optimiser: Any) -> Held | None:
        ref, held = self._known.get(id(optimiser), (None, None))
        return held if ref is not None and ref() is optimiser else None

    def find(self, optimiser: Optimizer) -> Held | None:
        """Whoever holds parameters of the model is taken in when it first steps."""
        ref, held = self._known.get(id(optimiser), (None, None))
        if ref is not None and ref() is optimiser:
            return held
        own = {id(p) for p in self._model.parameters()}
        mine = any(id(p) in own for group in optimiser.param_groups for p in group["params"])
        if not mine or sum(not h.given for h in self._held if h.ref() is not None) >= MOST_MET:
            self._known[id(optimiser)] = (weakref.ref(optimiser), None)
            return None
        heir_of = self.states[0]
        held = self._hold(optimiser, given=False)
        if self._latest is not None and self._latest.shares(held):
            heir_of = self._latest.states
        held.states.inherit(heir_of)
        held.rewritten = self._rewritten()
        self._held = [h for h in self._held if h.ref() is not None]
        self._known = {key: entry for key, entry in self._known.items() if entry[0]() is not None}
        return held

    def made(self, optimiser: Optimizer, location: Location | None) -> None:
        """It was made while the watch is open."""
        self._made = {key: entry for key, entry in self._made.items() if entry[0]() is not None}
        self._made[id(optimiser)] = (weakref.ref(optimiser), location)

    def begin_pass(self) -> None:
        """A loader begins again."""
        self._fresh_pass = True

    def stepped(self, held: Held, optimiser: Optimizer, step: int) -> Optimiser | None:
        """After a step: what is to be said of this optimiser, if it is new or comes back."""
        before, self._latest = self._latest, held
        held.steps += 1
        held.passes += self._fresh_pass
        self._fresh_pass = False
        told = None
        if held.seen is None:
            told = held.seen = self._described(held, optimiser, step, before)
        elif before is not None and before is not held and before.number > held.number and not held.seen.returned:
            told = held.seen = replace(held.seen, step=step, returned=True)
        held.written = held.states.version()
        return told

    def _rewritten(self) -> bool:
        """Did somebody write into the weights since the last step?"""
        before = self._latest
        return before is not None and before.written is not None and before.states.version() != before.written

    def idle(self) -> dict[int, int]:
        """Those that never stepped → the backwards that reached what nobody else holds or moves."""
        stepping = {id(p) for held in self._held if held.steps for p in held.weights.parameters}
        found = {}
        for held in self._held:
            alone = not any(id(p) in stepping for p in held.weights.parameters)
            if not held.steps and alone and held.states.all_backwards and held.states.unmoved():
                found[held.number] = held.states.all_backwards
        return found

    def _take_shape(self) -> None:
        """Lazy parameters have their shapes since the first forward pass: whoever holds them is looked at again."""
        self._unshaped = any(is_lazy(p) for p in self._model.parameters())
        own = {id(p) for p in self._model.parameters()}
        for held in self._held:
            held.weights.refresh()
            held.states = GradientStates(held.weights.parameters)
            if any(id(p) in own for p in held.weights.parameters):
                self._orphaned = None

    def _hold(self, optimiser: Optimizer, *, given: bool) -> Held:
        names = {id(p): path for path, p in self._model.named_parameters()}
        held = Held(optimiser, names, len(self._refs), given=given)
        if any(id(p) in names for p in held.weights.parameters):
            self._orphaned = None
        self._refs.append(held.ref)
        self._known[id(optimiser)] = (held.ref, held)
        self._held.append(held)
        return held

    def _described(self, held: Held, optimiser: Optimizer, step: int, before: Held | None) -> Optimiser:
        shared = before.shares(held) if before is not None else 0
        parameters = len(held.weights.parameters)
        stateful = any(isinstance(v, torch.Tensor) and v.dim() for state in optimiser.state.values() for v in state.values())
        ref, location = self._made.get(id(optimiser), (None, None))
        if ref is None or ref() is not optimiser:
            location = made_at(optimiser)
        seen = Optimiser(step, held.number, held.kind, parameters, stateful, held.given, carried=held.carried, location=location)
        if before is None or before is held or not shared:
            return seen
        return replace(
            seen,
            predecessor=before.number,
            shared=shared,
            predecessor_parameters=len(before.weights.parameters),
            predecessor_steps=before.steps,
            passes=before.passes,
            rewritten=held.rewritten,
        )
