"""Weights that the user's own code writes, without an optimiser: `with torch.no_grad(): p -= lr * p.grad`.

How a loop does it is learned in some of its first rounds: which tensors every backward reaches, whether they change before the
next one, and in which line. Whoever only wants gradients, for a map of what matters or to see how long a backward takes, writes
nothing, and is left alone.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from sleuth.adapters.listening.discovery import Discovery
from sleuth.adapters.listening.patches import tell
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.adapters.torch.watching.model_calls import Root
from sleuth.core.location import Location

# Rounds in a row that must go the same way.
ROUNDS = 3
# Whoever has not shown after so many backwards how weights are written does something else.
MOST_BACKWARDS = 24
# A graph is followed so far, and so many of its tensors are looked at.
MOST_NODES = 20_000
MOST_LEAVES = 256
# Of each tensor, to see whether it changes.
KEPT_VALUES = 256
# `p - lr * p.grad` makes a new tensor.
MOVES = ("sub", "add", "subtract", "rsub", "__sub__", "__add__", "__rsub__", "__radd__", "lerp", "addcmul", "addcdiv")
NO_WRITES = ("requires_grad_", "detach_", "retain_grad_")
IN_PLACE = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__setitem__")


class ByHand(Optimizer):
    """Stands for the code that writes the weights. It never steps; its steps are told of."""

    def __init__(self, parameters: Sequence[torch.Tensor], *, place: Location | None) -> None:
        super().__init__(list(parameters), {})
        self.place = place

    def step(self, closure: Any = None) -> Any:
        raise NotImplementedError


def written_at(optimiser: Optimizer) -> Location | None:
    return optimiser.place if isinstance(optimiser, ByHand) else None


class Witness(TorchFunctionMode):
    """Sees what is done with some tensors, from a backward until the loop goes on. Changes nothing."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._known = {t.data_ptr(): id(t) for t in tensors}
        self.written: dict[int, Location | None] = {}  # tensor → line
        self.thrown_away: dict[int, Location | None] = {}  # a new tensor was made of it, as a step would be

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        try:
            self._note(func, args, result)
        except Exception:  # the user's code goes on
            self._known = {}
        return result

    def _note(self, func: Any, args: Any, result: Any) -> None:
        name = getattr(func, "__name__", "")
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if not self._known or not tensors or (tensors[0].data_ptr() not in self._known and name not in MOVES):
            return
        if _writes(func, name):
            self.written.setdefault(self._known[tensors[0].data_ptr()], users_line(_frame()))
        elif name in MOVES and isinstance(result, torch.Tensor) and not result.requires_grad:
            for tensor in tensors:
                number = self._known.get(tensor.data_ptr())
                if number is not None and len(tensors) > 1 and all(t.shape == result.shape for t in tensors):
                    self.thrown_away.setdefault(number, users_line(_frame()))


class Learning:
    """The first rounds of a loop without an optimiser."""

    def __init__(self) -> None:
        self._backwards = 0
        self._leaves: dict[int, weakref.ref[torch.Tensor]] = {}
        self._values: dict[int, torch.Tensor] = {}
        self._witness: Witness | None = None
        self._thread = 0
        self._rounds: list[tuple[set[int], dict[int, Location | None], dict[int, Location | None]]] = []
        self.is_over = False

    def before_backward(self, loss: torch.Tensor) -> ByHand | None:
        """The last round is over. Who writes the weights, if that is clear by now?"""
        self._end_round()
        if self._backwards >= MOST_BACKWARDS:
            self.close()
            return None
        self._backwards += 1
        reached = leaves_of(loss)
        # What every backward reaches; an input that asks for its gradient is a new one each time.
        known = {number for number, ref in self._leaves.items() if ref() is reached.get(number)} if self._leaves else set(reached)
        if known != set(self._leaves):
            self._rounds.clear()
        self._leaves = {number: weakref.ref(reached[number]) for number in reached if number in known}
        return self._verdict() if len(self._rounds) >= ROUNDS else None

    def after_backward(self) -> bool:
        """Is somebody listening for what comes now?"""
        tensors = [t for ref in self._leaves.values() if (t := ref()) is not None and t.grad is not None][:MOST_LEAVES]
        if self._backwards < 2 or not tensors or not free_of_other_modes():
            return False
        self._values = {id(t): _sample(t) for t in tensors}
        self._witness, self._thread = Witness(tensors), threading.get_ident()
        self._witness.__enter__()
        return True

    def stop_listening(self) -> None:
        witness = self._witness
        if witness is None or threading.get_ident() != self._thread:
            return
        if torch.overrides._get_current_function_mode() is witness:
            witness.__exit__(None, None, None)

    def close(self) -> None:
        self.stop_listening()
        self._witness, self._values, self._leaves, self.is_over = None, {}, {}, True

    def _end_round(self) -> None:
        self.stop_listening()
        witness, self._witness = self._witness, None
        if witness is None:
            return
        tensors = {number: t for number, ref in self._leaves.items() if (t := ref()) is not None}
        same = [number for number, values in self._values.items() if number in tensors and _is(values, tensors[number])]
        changed = set(self._values) - set(same)
        self._rounds = [*self._rounds[1 - ROUNDS :], (changed, witness.written, witness.thrown_away)]
        self._values = {}

    def _verdict(self) -> ByHand | None:
        moved = [changed for changed, _, _ in self._rounds]
        lines: dict[int, Location | None] = {}
        if all(moved):
            wanted = set.union(*moved)
            lines = {number: line for _, written, _ in self._rounds for number, line in written.items()}
        elif not any(moved):
            wanted = set.intersection(*(set(thrown) for _, _, thrown in self._rounds))
            lines = self._rounds[-1][2]
        else:
            return None
        tensors = {number: t for number, ref in self._leaves.items() if (t := ref()) is not None}
        found = [tensors[number] for number in self._leaves if number in wanted and number in tensors]
        # An input that is changed in the sight of a model is an attack, or a picture that is painted.
        models = any(isinstance(t, nn.Parameter) for t in tensors.values())
        if not found or (models and not any(isinstance(t, nn.Parameter) for t in found)):
            return None
        return ByHand(found, place=next((lines[id(t)] for t in found if id(t) in lines), None))


class ManualSteps(TorchEvents):
    """Tells whoever watches of the steps: one begins at the first write to a weight after a backward, so that what is done to the
    gradients before (clipping) comes before it, and is over when the loop goes on."""

    def __init__(self, optimiser: ByHand, model: nn.Module, discovery: Discovery) -> None:
        self.optimiser, self._discovery = optimiser, discovery
        self._parameters: list[torch.Tensor] = optimiser.param_groups[0]["params"]
        self._mark: tuple[int, int] | None = None
        self._is_stepping = False
        self._first_write: FirstWrite | None = None
        self._unseen = False  # writes go another way than through torch's functions
        # Before the watcher's own: a step is over when the model is called.
        parts = list(model.children()) if isinstance(model, Several) else [model]
        self._roots = [Root(part, self) for part in parts]

    def open(self) -> None:
        """After the watcher's: the backward has been heard when the step begins."""
        patches.join(self)

    def close(self) -> None:
        self._wait_no_longer()
        self._end_step()
        patches.leave(self)
        while self._roots:
            self._roots.pop().leave()

    def give_up(self, error: Exception) -> None:
        self._wait_no_longer()
        self._discovery.give_up(error)

    def hear_forward(self, args: Any, kwargs: Any) -> None:
        self.go_on()

    def hear_backward(self, loss: torch.Tensor, options: Any) -> None:
        self._wait_no_longer()
        self._mark = self._gradient()

    def hear_backward_end(self, loss: torch.Tensor) -> None:
        if self._gradient() == self._mark:  # it was the backward of another model
            return
        if self._unseen or not free_of_other_modes():
            self._begin_step()
        else:
            self._first_write = FirstWrite(self._parameters, self._begin_step)
            self._first_write.__enter__()

    def go_on(self) -> None:
        waited = self._wait_no_longer()
        if self._is_stepping:
            self._end_step()
            self._discovery.leave_when_enough()
        else:
            self._unseen |= waited

    def _wait_no_longer(self) -> bool:
        """Was a write waited for?"""
        waiting, self._first_write = self._first_write, None
        if waiting is None:
            return False
        waiting.leave()
        return True

    def _gradient(self) -> tuple[int, int] | None:
        gradient = self._parameters[0].grad
        return None if gradient is None else (id(gradient), gradient._version)

    def _begin_step(self) -> None:
        self._is_stepping = True
        tell(list(patches.LISTENERS), "hear_step", self.optimiser, None)

    def _end_step(self) -> None:
        if self._is_stepping:
            self._is_stepping = False
            tell(list(patches.LISTENERS), "hear_step_end", self.optimiser)


class FirstWrite(TorchFunctionMode):
    """Calls `begin` right before the user's code writes to one of these tensors, or makes a new one of it as a step would."""

    def __init__(self, tensors: Sequence[torch.Tensor], begin: Callable[[], None]) -> None:
        self._known = {t.data_ptr() for t in tensors[:MOST_LEAVES]}
        self._begin: Callable[[], None] | None = begin
        self._thread = threading.get_ident()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._begin is not None:
            try:
                if self._is_write(func, args, kwargs or {}):
                    begin, self._begin = self._begin, None
                    begin()
            except Exception:  # the user's code goes on
                self._begin = None
        return func(*args, **(kwargs or {}))

    def _is_write(self, func: Any, args: Any, kwargs: Any) -> bool:
        name = getattr(func, "__name__", "")
        if _writes(func, name):
            first = args[0] if args else None
            targets = first if isinstance(first, list | tuple) else (first,)
        elif name in MOVES and not torch.is_grad_enabled():
            targets = args
        else:
            targets = (kwargs.get("out"),)
        return any(isinstance(t, torch.Tensor) and t.data_ptr() in self._known for t in targets)

    def leave(self) -> None:
        self._begin = None
        if threading.get_ident() == self._thread and torch.overrides._get_current_function_mode() is self:
            self.__exit__(None, None, None)


def free_of_other_modes() -> bool:
    """Whoever has put a mode of their own there takes off what is on top."""
    return all(isinstance(mode, DeviceContext) for mode in torch.overrides._get_current_function_mode_stack())


def leaves_of(loss: torch.Tensor) -> dict[int, torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    waiting: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor):
            found[id(leaf)] = leaf
        waiting += [following for following, _ in node.next_functions]
    return found


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().flatten()
    return flat[:: max(1, len(flat) // KEPT_VALUES)].clone()


def _is(values: torch.Tensor, tensor: torch.Tensor) -> bool:
    now = _sample(tensor)
    return now.shape == values.shape and torch.equal(now, values)


def _writes(func: Any, name: str) -> bool:
    in_place = name.endswith("_") and not name.endswith("__") and name not in NO_WRITES
    return in_place or name in IN_PLACE or _sets_data(func)


def _sets_data(func: Any) -> bool:
    return getattr(func, "__self__", None) is torch.Tensor.data


def _frame() -> FrameType:
    return sys._getframe(3)
