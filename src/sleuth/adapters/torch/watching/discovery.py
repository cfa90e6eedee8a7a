"""Trainings are noticed from outside: an optimiser is made, then something happens that a loop begins with."""

import gc
import sys
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

from sleuth.adapters.listening import discovery
from sleuth.adapters.listening.discovery import Begin
from sleuth.adapters.listening.patches import Patch
from sleuth.adapters.torch.watching import created_at, patches
from sleuth.adapters.torch.watching.call_places import calling_frame
from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.adapters.torch.watching.finding_models import find_model, stepped_by
from sleuth.adapters.torch.watching.manual_steps import ManualSteps
from sleuth.adapters.torch.watching.manual_updates import ByHand, Learning
from sleuth.adapters.torch.watching.module_calls import ModuleCalls
from sleuth.core.contract.adapter import Attended
from sleuth.core.observation.calls import CallKind


class Followed:
    """One training that is being watched."""

    def __init__(self, model: nn.Module, optimisers: list[Optimizer], attended: Attended) -> None:
        self.parameters = {id(p): weakref.ref(p) for p in model.parameters()}
        self.optimisers = [weakref.ref(optimiser) for optimiser in optimisers]
        self.attended = attended

    def holds(self, tensor: torch.Tensor) -> bool:
        ref = self.parameters.get(id(tensor))
        return ref is not None and ref() is tensor

    @property
    def is_left(self) -> bool:
        return all(ref() is None for ref in self.optimisers)


class Discovery(discovery.Discovery, TorchEvents):
    def __init__(self, begin: Begin, steps: int | None = None) -> None:
        super().__init__(begin, steps)
        self._lock = threading.RLock()
        self._pending: list[weakref.ref[Optimizer]] = []  # made, and not yet at work
        self._old: weakref.WeakSet[Optimizer] = weakref.WeakSet()  # made before anybody listened: they may never be used again
        self._known: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._followed: list[Followed] = []
        self._is_settling = False
        self._learning: Learning | None = Learning()  # whether weights are written by hand; None: somebody else does it
        self._manual: ManualSteps | None = None
        self._unrelated: weakref.WeakSet[nn.Module] = weakref.WeakSet()  # called, and nothing of theirs waits for a step
        self._module_calls = ModuleCalls(self)
        self._handles: list[RemovableHandle | Patch | created_at.Listening] = []

    def open(self, *, found_already: bool = False) -> None:
        patches.join(self)
        self._handles += created_at.open_patches()
        if found_already:
            self._old.update(thing for thing in gc.get_objects() if issubclass(type(thing), Optimizer))
            if self._old:
                self.forget_manual_updates()
            self._module_calls.listen()
        # After the patches' own: whoever watches has heard of the step when the loop is left.
        if self._most_steps is not None:
            self._handles.append(register_optimizer_step_post_hook(self._after_step))

    def close(self) -> None:
        patches.leave(self)
        self.forget_manual_updates()
        self._end_manual_steps()
        self._module_calls.stop()
        while self._handles:
            self._handles.pop().remove()
        self._pending.clear()
        self._followed.clear()

    def give_up(self, error: Exception) -> None:
        super().give_up(error)
        self._pending.clear()

    # A training begins with whatever comes first of these.

    def hear_made(self, optimiser: Optimizer) -> None:
        with self._lock:
            created_at.note_made(optimiser)
            self._await(optimiser)

    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._go_on()
        if self._pending:
            self._settle()
        elif self._learning is not None:
            self._learn(loss)

    def hear_backward_end(self, loss: torch.Tensor) -> None:
        with self._lock:
            if self._learning is not None and self._learning.after_backward():
                self._module_calls.listen()

    def hear_index(self, iterator: Any, positions: Any) -> None:
        self._go_on()
        if self._pending:
            self._settle()

    def hear_call(self, kind: CallKind, thing: Any) -> None:
        self._go_on()
        if isinstance(thing, Optimizer):
            self._meet(thing)
        if self._pending:
            self._settle()

    def hear_scheduler(self, scheduler: Any, told: bool) -> None:
        # One that steps when it is made says nothing about the loop.
        if self._pending and calling_frame().f_code.co_name != "_initial_step":
            self._settle()

    def hear_step(self, optimiser: Optimizer, closure: Any) -> None:
        self._meet(optimiser)
        if self._pending:
            self._settle()

    def hear_module(self, module: nn.Module) -> None:
        """Any module is about to be called; told only while an optimiser waits."""
        with self._lock:
            if self._learning is not None:
                self._learning.stop_listening()
            if not self.is_listening or module in self._unrelated:
                return
            own = {id(p) for p in module.parameters()}
            for optimiser in [o for o in self._old if o not in self._known and not own.isdisjoint(stepped_by([o]))]:
                self._await(optimiser)
            if not own.isdisjoint(stepped_by(o for ref in self._pending if (o := ref()) is not None)):
                self._settle()
            else:
                self._unrelated.add(module)

    def _after_step(self, optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.leave_when_enough()

    # Weights that are written by hand: see manual_updates.py.

    def _go_on(self) -> None:
        if self._manual is not None:
            self._manual.go_on()

    def _learn(self, loss: torch.Tensor) -> None:
        with self._lock:
            self._module_calls.stop()
            if not self.is_listening or self._learning is None:
                self.forget_manual_updates()
                return
            self._is_settling = True
            try:
                found = self._learning.before_backward(loss)
                if found is not None:
                    self.forget_manual_updates()
                    self._begin_by_hand(found)
                elif self._learning.is_over:
                    self._learning = None
            finally:
                self._is_settling = False

    def forget_manual_updates(self) -> None:
        if self._learning is not None:
            self._learning.close()
            self._learning = None

    def _end_manual_steps(self) -> None:
        if self._manual is not None:
            self._manual.close()
            self._manual = None

    def _begin_by_hand(self, found: ByHand) -> None:
        model, name = find_model([found], sys._getframe(3))
        # Its weights are changed by an optimiser of Keras, whose steps and modes are not heard here.
        if any(kind.__module__.startswith("keras.") for kind in type(model).__mro__):
            return
        # Before the watch is opened: its roots come first.
        self._manual = ManualSteps(found, model, self)
        attended = self.begin(model, (found,), name)
        if attended is None:
            self._end_manual_steps()
            return
        self._followed.append(Followed(model, [found], attended))
        self._manual.open()

    # Optimisers that wait for their training to begin.

    def _meet(self, optimiser: Optimizer) -> None:
        if optimiser not in self._known:
            with self._lock:
                self._await(optimiser)

    def _await(self, optimiser: Optimizer) -> None:
        if optimiser in self._known or self.trouble is not None:
            return
        self._known.add(optimiser)
        if self._is_settling:  # it is one of ours: a watch that ends makes its optimiser again
            return
        self.forget_manual_updates()
        self._pending.append(weakref.ref(optimiser))
        self._unrelated.clear()
        self._module_calls.listen()

    def _settle(self) -> None:
        with self._lock:
            self._is_settling = True
            try:
                self._begin_training()
            finally:
                self._is_settling = False

    def _begin_training(self) -> None:
        """Who of those that wait begins a training of its own?"""
        waiting = [optimiser for ref in self._pending if (optimiser := ref()) is not None]
        self._pending.clear()
        self._module_calls.stop()
        # An optimiser that was made anew for a model that is watched: the watch finds it by itself.
        fresh = [o for o in waiting if not self._is_followed(o)]
        if not fresh:
            return
        for followed in [f for f in self._followed if f.attended.steps == 0]:  # it only seemed to begin
            fresh = [o for ref in followed.optimisers if (o := ref()) is not None] + fresh
            self._followed.remove(followed)
            self.drop(followed.attended)
        if self.is_full:
            self.missed += 1
            return
        model, name = find_model(fresh, sys._getframe(3))
        for followed in [f for f in self._followed if f.is_left or any(f.holds(p) for p in model.parameters())]:
            self._followed.remove(followed)
            if self._manual is not None and any(ref() is self._manual.optimiser for ref in followed.optimisers):
                self._end_manual_steps()
            self.end(followed.attended)
        attended = self.begin(model, tuple(fresh), name)
        if attended is not None:
            self._followed.append(Followed(model, fresh, attended))

    def _is_followed(self, optimiser: Optimizer) -> bool:
        tensors = stepped_by([optimiser]).values()
        return any(all(f.holds(p) for p in tensors) for f in self._followed)
