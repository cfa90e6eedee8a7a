"""Weights that the user's own code writes, without an optimiser: `with torch.no_grad(): p -= lr * p.grad`.

How a loop does it is learned in some of its first rounds: which tensors every backward reaches, whether they change before the
next one, and in which line. Whoever only wants gradients, for a map of what matters or to see how long a backward takes, writes
nothing, and is left alone.
"""

import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim import SGD, Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.measured_rate import Measuring, sample
from sleuth.core.location import Location

# Rounds in a row that must go the same way.
ROUNDS = 3
# Whoever has not shown after so many backwards how weights are written does something else.
MOST_BACKWARDS = 24
# A graph is followed so far, and so many of its tensors are looked at.
MOST_NODES = 20_000
MOST_LEAVES = 256
# What the weights of one round, or of several, may differ in the rates that are measured at them.
SAME_RATE = 1.01
STEADY_RATE = 1.5
# `p - lr * p.grad` makes a new tensor.
MOVES = ("sub", "add", "subtract", "rsub", "__sub__", "__add__", "__rsub__", "__radd__", "lerp", "addcmul", "addcdiv")
NO_WRITES = ("requires_grad_", "detach_", "retain_grad_")
IN_PLACE = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__setitem__")


class ByHand(Optimizer):
    """Stands for the code that writes the weights. It never steps; its steps are told of. Where they follow the gradient alone,
    plain SGD does the same."""

    def __init__(self, parameters: Sequence[torch.Tensor], *, place: Location | None, rate: float | None = None) -> None:
        super().__init__(list(parameters), {} if rate is None else {"lr": rate})
        self.place = place
        self.same_as = None if rate is None else SGD

    def step(self, closure: Any = None) -> Any:
        raise NotImplementedError


def written_at(optimiser: Optimizer) -> Location | None:
    return optimiser.place if isinstance(optimiser, ByHand) else None


class Witness(TorchFunctionMode):
    """Sees what is done with some tensors, from a backward until the loop goes on. Changes nothing."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._known = {t.data_ptr(): t for t in tensors}
        self.written: dict[int, Location | None] = {}  # tensor → line
        self.gradients: dict[int, torch.Tensor] = {}  # of those, as they were when it was written
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
        if writes(func, name):
            for tensor in written_by(args):
                self._note_write(self._known.get(tensor.data_ptr()))
        elif name in MOVES and isinstance(result, torch.Tensor) and not result.requires_grad:
            for tensor in tensors:
                known = self._known.get(tensor.data_ptr())
                if known is not None and len(tensors) > 1 and all(t.shape == result.shape for t in tensors):
                    self.thrown_away.setdefault(id(known), users_line(sys._getframe(2)))

    def _note_write(self, known: torch.Tensor | None) -> None:
        if known is not None and id(known) not in self.written:
            self.written[id(known)] = users_line(sys._getframe(3))
            if known.grad is not None:
                self.gradients[id(known)] = sample(known.grad)


class Round(NamedTuple):
    """From one backward to the next: tensors by number, with the lines."""

    changed: set[int]
    written: dict[int, Location | None]
    thrown_away: dict[int, Location | None]
    rate: float | None


class Learning:
    """The first rounds of a loop without an optimiser."""

    def __init__(self) -> None:
        self._backwards = 0
        self._leaves: dict[int, weakref.ref[torch.Tensor]] = {}
        self._values: dict[int, torch.Tensor] = {}
        self._witness: Witness | None = None
        self._thread = 0
        self._rounds: list[Round] = []
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
        self._values = {id(t): sample(t) for t in tensors}
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
        rates = [
            Measuring(tensors[number], self._values[number], gradient).rate()
            for number, gradient in witness.gradients.items()
            if number in changed and number in tensors
        ]
        self._rounds = [
            *self._rounds[1 - ROUNDS :],
            Round(changed, witness.written, witness.thrown_away, agreed(rates, SAME_RATE)),
        ]
        self._values = {}

    def _verdict(self) -> ByHand | None:
        moved = [each.changed for each in self._rounds]
        lines: dict[int, Location | None] = {}
        if all(moved):
            wanted = set.union(*moved)
            lines = {number: line for each in self._rounds for number, line in each.written.items()}
        elif not any(moved):
            wanted = set.intersection(*(set(each.thrown_away) for each in self._rounds))
            lines = self._rounds[-1].thrown_away
        else:
            return None
        tensors = {number: t for number, ref in self._leaves.items() if (t := ref()) is not None}
        found = [tensors[number] for number in self._leaves if number in wanted and number in tensors]
        # An input that is changed in the sight of a model is an attack, or a picture that is painted.
        models = any(isinstance(t, nn.Parameter) for t in tensors.values())
        if not found or (models and not any(isinstance(t, nn.Parameter) for t in found)):
            return None
        rate = agreed([each.rate for each in self._rounds], STEADY_RATE)
        return ByHand(found, place=next((lines[id(t)] for t in found if id(t) in lines), None), rate=rate)


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


def _is(values: torch.Tensor, tensor: torch.Tensor) -> bool:
    now = sample(tensor)
    return now.shape == values.shape and torch.equal(now, values)


def agreed(rates: Sequence[float | None], factor: float) -> float | None:
    """The last of them; None: they differ, or one was not measured."""
    known = [rate for rate in rates if rate is not None]
    return known[-1] if known and len(known) == len(rates) and max(known) <= factor * min(known) else None


def writes(func: Any, name: str) -> bool:
    in_place = name.endswith("_") and not name.endswith("__") and name not in NO_WRITES
    return in_place or name in IN_PLACE or getattr(func, "__self__", None) is torch.Tensor.data


def written_by(args: Any) -> list[torch.Tensor]:
    """One tensor, or a list of them: torch._foreach_add_."""
    first = args[0] if args else None
    return [t for t in (first if isinstance(first, list | tuple) else (first,)) if isinstance(t, torch.Tensor)]
