"""Trainings are noticed from outside: an optimiser is made, then something happens that a loop begins with.

Runs inside the user's script: what goes wrong here ends the listening and is said; it never reaches the script.
"""

import functools
import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

from sleuth.adapters.torch.watching import activity, created_at, patches
from sleuth.adapters.torch.watching.call_places import calling_frame
from sleuth.adapters.torch.watching.finding_models import find_model, stepped_by
from sleuth.adapters.torch.watching.manual_updates import ByHand, Hands, Learning
from sleuth.core.contract.adapter import Attended, Discovered, Discovering
from sleuth.core.errors import EnoughSteps

P = ParamSpec("P")
Begin = Callable[[Discovered], Attended]
# Whoever makes a model anew at every step is not followed into each of them.
MOST_TRAININGS = 16


def contained(method: Callable[P, None]) -> Callable[P, None]:
    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        discovery: Any = args[0]
        try:
            with discovery.lock:
                method(*args, **kwargs)
        except Exception as error:
            discovery.trouble = f"{type(error).__name__}: {error}"
            discovery.pending.clear()

    return call


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


class Discovery(patches.Listener, Discovering):
    def __init__(self, begin: Begin, steps: int | None = None) -> None:
        self.lock = threading.RLock()
        self.trouble = None
        self.missed = 0
        self.pending: list[weakref.ref[Optimizer]] = []  # made, and not yet at work
        self._old: weakref.WeakSet[Optimizer] = weakref.WeakSet()  # made before anybody listened: they may never be used again
        self._begin = begin
        self._most_steps = steps
        self._known: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._followed: list[Followed] = []
        self._count = 0
        self._is_settling = False
        self._learning: Learning | None = Learning()  # whether weights are written by hand; None: somebody else does it
        self._hands: Hands | None = None
        self._steps_before = 0  # of trainings that have ended
        self._strangers: weakref.WeakSet[nn.Module] = weakref.WeakSet()  # called, and nothing of theirs waits for a step
        self._plain_call: Any = None
        self._ours: Any = None
        self._handles: list[RemovableHandle | patches.Tap | created_at.Listening] = []
        self._process = os.getpid()

    def open(self, *, found_already: bool = False) -> None:
        patches.join(self)
        self._handles += created_at.open_taps()
        if found_already:
            self._old.update(thing for thing in gc.get_objects() if issubclass(type(thing), Optimizer))
            if self._old:
                self.forget_manual_updates()
            self._hear_calls()
        # After the taps' own: whoever watches has heard of the step when the loop is left.
        if self._most_steps is not None:
            self._handles.append(register_optimizer_step_post_hook(self._stop_when_enough))

    def close(self) -> None:
        patches.leave(self)
        self.forget_manual_updates()
        if self._hands is not None:
            self._hands.close()
            self._hands = None
        self._stop_hearing_calls()
        while self._handles:
            self._handles.pop().remove()
        self.pending.clear()
        self._followed.clear()

    # A training begins with whatever comes first of these.

    @contained
    def hear_made(self, optimiser: Optimizer) -> None:
        created_at.note_made(optimiser)
        self._await(optimiser)

    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._go_on()
        if self.pending:
            self._settle()
        elif self._learning is not None:
            self._learn(loss)

    def hear_backward_end(self, loss: torch.Tensor) -> None:
        if self._learning is not None:
            self._listen_to_hands()

    def hear_index(self, iterator: Any, positions: Any) -> None:
        self._go_on()
        if self.pending:
            self._settle()

    def hear_call(self, kind: str, thing: Any) -> None:
        self._go_on()
        if isinstance(thing, Optimizer) and thing not in self._known:
            self._meet(thing)
        if self.pending:
            self._settle()

    def hear_scheduler(self, scheduler: Any, told: bool) -> None:
        # One that steps when it is made says nothing about the loop.
        if self.pending and calling_frame().f_code.co_name != "_initial_step":
            self._settle()

    def hear_step(self, optimiser: Optimizer, closure: Any) -> None:
        if optimiser not in self._known:
            self._meet(optimiser)
        if self.pending:
            self._settle()

    # Weights that are written by hand: see hands.py.

    def _go_on(self) -> None:
        if self._hands is not None:
            self._hands.go_on()

    @contained
    def _learn(self, loss: torch.Tensor) -> None:
        assert self._learning is not None
        self._stop_hearing_calls()
        if os.getpid() != self._process or self.trouble is not None:
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

    @contained
    def _listen_to_hands(self) -> None:
        if self._learning is not None and self._learning.after_backward():
            self._hear_calls()

    def forget_manual_updates(self) -> None:
        if self._learning is not None:
            self._learning.close()
            self._learning = None

    def _begin_by_hand(self, found: ByHand) -> None:
        model, name = find_model([found], sys._getframe(3))
        # Its weights are changed by an optimiser of Keras, whose steps and modes are not heard here.
        if any(kind.__module__.startswith("keras.") for kind in type(model).__mro__):
            return
        self._hands = Hands(found, model, self._leave_when_enough)
        self._count += 1
        attended = self._begin(Discovered(model, (found,), name))
        self._followed.append(Followed(model, [found], attended))
        self._hands.open()

    @contained
    def _meet(self, optimiser: Optimizer) -> None:
        self._await(optimiser)

    def _await(self, optimiser: Optimizer) -> None:
        if optimiser in self._known or self.trouble is not None:
            return
        self._known.add(optimiser)
        if self._is_settling:  # it is one of ours: a watch that ends makes its optimiser again
            return
        self.forget_manual_updates()
        self.pending.append(weakref.ref(optimiser))
        self._strangers.clear()
        self._hear_calls()

    @contained
    def _settle(self) -> None:
        self._is_settling = True
        try:
            self._begin_training()
        finally:
            self._is_settling = False

    def _begin_training(self) -> None:
        """Who of those that wait begins a training of its own?"""
        waiting = [optimiser for ref in self.pending if (optimiser := ref()) is not None]
        self.pending.clear()
        self._stop_hearing_calls()
        # An optimiser that was made anew for a model that is watched: the watch finds it by itself.
        fresh = [o for o in waiting if not self._is_followed(o)]
        if not fresh:
            return
        for followed in [f for f in self._followed if f.attended.steps == 0]:  # it only seemed to begin
            fresh = [o for ref in followed.optimisers if (o := ref()) is not None] + fresh
            self._followed.remove(followed)
            self._count -= 1
            followed.attended.drop()
        if self._count >= MOST_TRAININGS:
            self.missed += 1
            return
        self._count += 1
        model, name = find_model(fresh, sys._getframe(3))
        for followed in [f for f in self._followed if f.is_left or any(f.holds(p) for p in model.parameters())]:
            self._followed.remove(followed)
            if self._hands is not None and any(ref() is self._hands.optimiser for ref in followed.optimisers):
                self._hands.close()
                self._hands = None
            self._steps_before += followed.attended.steps
            followed.attended.end()
        attended = self._begin(Discovered(model, tuple(fresh), name))
        self._followed.append(Followed(model, fresh, attended))

    def _is_followed(self, optimiser: Optimizer) -> bool:
        tensors = stepped_by([optimiser]).values()
        return any(all(f.holds(p) for p in tensors) for f in self._followed)

    # Calls of modules are heard only while an optimiser waits, and never beside somebody who records them.

    def _hear_calls(self) -> None:
        if self._ours is not None or activity.RECORDING:
            return
        plain = self._plain_call = nn.Module.__call__

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self._ours is not call:
                return plain(module, *args, **kwargs)
            self._called(module)
            # A watch that has just been opened listens at the module's own class. As long as somebody waits none has: whoever
            # records calls by now would come by here again, and again.
            again = plain if self._ours is call else type(module).__call__
            return again(module, *args, **kwargs)

        self._ours = call
        nn.Module.__call__ = call  # type: ignore[method-assign]

    def _stop_hearing_calls(self) -> None:
        ours, self._ours = self._ours, None
        # Whoever records calls has begun after us.
        if ours is None or activity.replace_beneath(ours, self._plain_call):
            return
        if nn.Module.__call__ is ours:
            nn.Module.__call__ = self._plain_call  # type: ignore[method-assign]

    @contained
    def _called(self, module: nn.Module) -> None:
        if self._learning is not None:
            self._learning.stop_listening()
        if os.getpid() != self._process or module in self._strangers:
            return
        own = {id(p) for p in module.parameters()}
        for optimiser in [o for o in self._old if o not in self._known and not own.isdisjoint(stepped_by([o]))]:
            self._await(optimiser)
        if not own.isdisjoint(stepped_by(o for ref in self.pending if (o := ref()) is not None)):
            self._settle()
        else:
            self._strangers.add(module)

    def _stop_when_enough(self, optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._leave_when_enough()

    def _leave_when_enough(self) -> None:
        steps = self._steps_before + sum(f.attended.steps for f in self._followed)
        if os.getpid() == self._process and self._most_steps is not None and steps >= self._most_steps:
            raise EnoughSteps
