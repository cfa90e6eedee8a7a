"""What a step of the user's own does with the arrays of a batch: which the model gets, which the loss compares with."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.loss_calls import CARRIERS, FAMILIES, bind
from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Usage

# Beyond these a value cannot be followed.
LEAVES_TORCH = {"numpy", "tolist", "item", "__array__", "__index__", "__int__", "__float__", "__bool__"}


@contextmanager
def calls_heard(model: nn.Module, hear: Callable[[Any, Any], None]) -> Iterator[None]:
    """`hear(arguments, output)` after each call of the model, or of a part of it that the user calls directly."""
    depth = 0

    def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
        nonlocal depth
        depth += 1

    def leave(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        nonlocal depth
        depth -= 1
        if depth == 0:
            hear((args, kwargs), output)

    with ExitStack() as stack:
        for module in model.modules():
            stack.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(leave, with_kwargs=True, always_call=True).remove)
        yield


def detached(output: Any) -> Any:
    """A copy: the step may change it in place."""
    return map_arrays(output, lambda t: t.detach().clone(), is_tensor)


class UsageNotes:
    """Follows each array of a batch through the ops of a step, until it meets the model's weights."""

    def __init__(self, model: nn.Module, raw: Any) -> None:
        self.listener = Listener(model)
        self._root = model
        self._sources: dict[int, frozenset[str]] = {}  # tensor → the batch's arrays that it was made of
        self._whole: dict[int, str] = {}  # tensor → the array that it is, up to shape and dtype
        self._learned: set[int] = {id(p) for p in model.parameters()}  # made with the help of weights
        self._inputs: set[str] = set()
        self._inner: set[str] = set()  # met by layers or weights inside
        self._targets: set[str] = set()
        self._met: set[str] = set()
        self._copied: set[str] = set()  # targets that are the array itself
        self._escaped: set[str] = set()
        for path, tensor in leaves(raw, is_tensor):
            self._sources[id(tensor)] = frozenset((path,))
            self._whole[id(tensor)] = path
            self.listener.alive.append(tensor)
        self.listener.on_op.append(self._op)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as stack:
            for module in self._root.modules():
                given = self._inputs if module is self._root else self._inner
                hook = module.register_forward_pre_hook(self._enter(given), with_kwargs=True)
                stack.callback(hook.remove)
            stack.enter_context(calls_heard(self._root, self._leave))
            stack.enter_context(self.listener.listening())
            yield

    def _enter(self, given: set[str]) -> Callable[..., None]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            given.update(*(self._sources.get(id(t), ()) for _, t in leaves((args, kwargs), is_tensor)))

        return enter

    def _leave(self, given: Any, output: Any) -> None:
        for _, tensor in leaves(output, is_tensor):
            self._learn(id(tensor))
            self.listener.alive.append(tensor)

    def _learn(self, tensor: int) -> None:
        self._learned.add(tensor)
        self._sources.pop(tensor, None)
        self._whole.pop(tensor, None)

    def _op(self, op: Op, output: Any) -> None:
        sources = frozenset[str]().union(*(self._sources.get(i, ()) for i in op.inputs))
        learned = any(i in self._learned for i in op.inputs)
        if not (op.name in FAMILIES and self._is_loss(op)) and learned:
            met = self._inner if self.listener.inside else self._met
            met |= sources
        if op.name in LEAVES_TORCH:
            self._escaped |= sources
        for made in op.outputs:
            if learned:
                self._learn(made)
            elif sources:
                self._sources[made] = sources
        self._carry(op, output)

    def _carry(self, op: Op, output: Any) -> None:
        whole = self._whole.get(op.inputs[0]) if op.inputs else None
        if whole is not None and is_tensor(output) and op.name in CARRIERS and is_tensor(op.args[0]):
            if output.numel() == op.args[0].numel():
                self._whole[id(output)] = whole
        elif is_tensor(output) and id(output) not in op.inputs:
            self._whole.pop(id(output), None)

    def _is_loss(self, op: Op) -> bool:
        """Notes what a known loss compares; False where it compares otherwise than output with target."""
        bound = bind(op)
        sides = [t for key in ("input", "target") if is_tensor(t := bound.get(key))]
        if not any(id(t) in self._learned for t in sides):
            return False
        for tensor in sides:
            self._targets |= self._sources.get(id(tensor), frozenset())
            if id(tensor) in self._whole:
                self._copied.add(self._whole[id(tensor)])
        return True

    def usage(self, guess: frozenset[str]) -> Usage | None:
        """None where the values could not be followed. `guess`: the arrays that look like the target from outside."""
        reached = self._inputs | self._inner
        targets = self._targets or self._compared(guess)
        if not reached or targets is None or (not targets and guess & self._escaped):
            return None
        # Labels that a model is handed for its own loss reach none of its layers.
        handed = {path for path in targets if path not in self._inner} if self._root._modules else set()
        inputs = reached - handed
        # What the model reads is a target only as a whole: not a shifted part of it, nor what a teacher makes of it.
        kept = {path for path in targets if path not in inputs or path in self._copied}
        return Usage(tuple(sorted(inputs)), tuple(sorted(kept))) if inputs else None

    def _compared(self, guess: frozenset[str]) -> set[str] | None:
        """What a hand-written loss sets against the outputs; None where that may be weights as well as targets."""
        met = self._met - self._inputs - self._inner
        if len(met) <= 1:
            return met
        return set(guess) if guess and guess <= met else None


def follow(model: nn.Module, raw: Any, run: Callable[[], Any], guess: frozenset[str]) -> Usage | None:
    notes = UsageNotes(model, raw)
    with torch.enable_grad(), notes.listening():
        run()
    return notes.usage(guess)
