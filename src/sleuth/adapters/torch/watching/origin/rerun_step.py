"""A step done once more on a copy of the model, from the inputs that are still there, up to the op that is to blame."""

import math
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters.torch.copying import deep_copy
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.tracing import call
from sleuth.adapters.torch.watching.origin import tensor_sources
from sleuth.adapters.torch.watching.origin.judging import Case, Verdict, backward
from sleuth.adapters.torch.watching.origin.tape import Recorded, Tape
from sleuth.adapters.torch.watching.origin.witness import Witness
from sleuth.adapters.torch.watching.step_memory import Forward, Memory, View, detached
from sleuth.core.location import Location
from sleuth.core.runtime.tree import leaves


@dataclass(frozen=True)
class Asked:
    model: nn.Module
    memory: Memory
    others: Sequence[torch.Tensor]  # of the batch, beside the model's inputs
    tapes: Sequence[Tape]
    loss: float | None  # as it went backward
    backward: bool  # the loss is finite: it is the gradient that is not
    ends: float  # by the clock
    line: Location | None = None  # that calls the model


class Again:
    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.twin = _twin(asked.model)
        self.witness = Witness(self.twin, asked.ends)
        self.witness.fallback = asked.line
        self.outputs: list[Any] = []
        self.inputs: list[list[torch.Tensor]] = []  # of each call
        self.root: torch.Tensor | None = None
        self.faithful = False  # it is known to be what went backward
        self._guessed = False
        self.gradients: list[torch.Tensor | None] = []  # of the inputs that have one

    def run(self) -> Verdict | None:
        with torch.enable_grad():
            for forward in self.asked.memory.forwards:
                self._forward(forward)
            self.witness.fallback = None
            self._loss()
            case = Case(self.witness.deeds)
            if self.asked.backward:
                return self._backward(case)
            verdict = case.forward([*([self.root] if self.root is not None else []), *self._returned()])
            return self._before(case, verdict)

    def _before(self, case: Case, verdict: Verdict | None) -> Verdict | None:
        """An input that was computed from what an earlier call returned is not data: that call is asked instead."""
        while verdict is not None and verdict.leaf is not None:
            number = self._computed(verdict.leaf.key)
            if number is None:
                return verdict
            verdict = case.forward([t for _, t in leaves(self.outputs[:number], is_tensor)])
        return verdict

    def _computed(self, key: int) -> int | None:
        """The call of which this is an input, if something learned has made it."""
        for number, forward in enumerate(self.asked.memory.forwards):
            for own, given in zip(self.inputs[number], forward.inputs, strict=False):
                if id(own) == key and given.requires_grad:
                    return number
        return None

    def named(self) -> dict[str, torch.Tensor]:
        return {**dict(self.twin.named_parameters()), **dict(self.twin.named_buffers())}

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The model's inputs that can have a gradient."""
        return [t for tensors in self.inputs for t in tensors if t.requires_grad]

    def _returned(self) -> list[torch.Tensor]:
        return [t for _, t in leaves(self.outputs, is_tensor)]

    def _forward(self, forward: Forward) -> None:
        """With the random state that the call began with, on copies of its inputs."""
        if forward.random is not None:  # else the model draws nothing
            torch.set_rng_state(forward.random)
        args, kwargs = detached(forward.args), detached(dict(forward.kwargs))
        tensors = [t for _, t in leaves([list(args), kwargs], is_tensor)]
        for tensor in tensors:
            if tensor.is_floating_point() and not tensor.is_sparse:
                tensor.requires_grad_()
        self.inputs.append(tensors)
        with ExitStack() as stack:
            if forward.autocast is not None:
                stack.enter_context(torch.autocast(*forward.autocast))
            stack.enter_context(self.witness.listening())
            self.outputs.append(call(self.twin.get_submodule(forward.part), args, kwargs))

    def _loss(self) -> None:
        """From the tape that comes to the same value, else from the losses that were heard, else from any tape."""
        random, count = torch.get_rng_state(), len(self.witness.deeds)
        spare: tuple[torch.Tensor, list[Any]] | None = None
        for make in (*(lambda t=t: self._played(t) for t in self.asked.tapes), self._heard):
            torch.set_rng_state(random)
            self._guessed = False
            del self.witness.deeds[count:]
            root = make()
            if root is None:
                continue
            if self._is_the_same(root, count):
                self.root, self.faithful = root, True
                return
            spare = spare or (root, self.witness.deeds[count:])
        del self.witness.deeds[count:]
        if spare is not None:
            self.root = spare[0]
            self.witness.deeds += spare[1]

    def _is_the_same(self, root: torch.Tensor, count: int) -> bool:
        """A scaler goes backward from a multiple of the loss: then the loss is on the way."""
        wanted = self.asked.loss
        # One NaN is like the other: it proves nothing where something was guessed.
        if wanted is None or (self._guessed and not math.isfinite(wanted)):
            return False
        single = [t for d in self.witness.deeds[count:] for t in d.tensors if t.numel() == 1 and t.is_floating_point()]
        return any(_same(float(t.detach()), wanted) for t in (root, *single) if t.numel() == 1)

    def _played(self, tape: Tape) -> torch.Tensor | None:
        try:
            around = tensor_sources.Surroundings(self.asked.model, self.asked.memory, self.asked.others)
            known, self._guessed = tensor_sources.find(tape, around, self.named(), self.inputs)
            for slot, (number, path) in tape.outputs.items():
                known[slot] = dict(leaves(self.outputs[number], is_tensor))[path]
            with self.witness:
                return tape.run(known, self._around)
        except (LookupError, RuntimeError, TypeError, ValueError, AttributeError):  # the step went another way this time
            return None

    def _around(self, recorded: Recorded) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(self.witness.written_at(recorded.location))
        if recorded.autocast is not None:
            stack.enter_context(torch.autocast(*recorded.autocast))
        return stack

    def _heard(self) -> torch.Tensor | None:
        with self.witness:
            return loss_again(self.asked.memory, self.outputs)

    def _backward(self, case: Case) -> Verdict | None:
        root, start = self.root, None
        if root is None or not root.requires_grad:
            # What came back to the model is not known. Where its own derivative has no value, any gradient shows it.
            ends = [t for t in self._returned() if t.requires_grad and t.is_floating_point()]
            if not ends:
                return None
            root, self.faithful = sum((t.float().sum() for t in ends), torch.zeros(())), False
        if root.numel() > 1:
            start = torch.ones_like(root)
        wanted = [*self.leaves, *(p for p in self.twin.parameters() if p.requires_grad)]
        gradients, verdict = backward(case, root, start, wanted)
        self.gradients = gradients[: len(self.leaves)]
        return verdict


def loss_again(memory: Memory, outputs: list[Any]) -> torch.Tensor | None:
    """What went backward, as far as it was heard: an output, or the sum of what the losses return. None where something was
    computed in between."""
    if isinstance(memory.root, View):
        return found_again(memory.root, outputs)
    heard = memory.losses if memory.root is None else [memory.losses[memory.root]]
    if not heard or not all(h.can_be_repeated for h in heard):
        return None
    total: Any = 0
    for one in heard:
        args = [found_again(a, outputs) for a in one.args]
        kwargs = {key: found_again(a, outputs) for key, a in one.kwargs.items()}
        value = getattr(functional, one.name)(*args, **kwargs)
        value = value if value.dim() == 0 else value.mean()
        total = value if len(heard) == 1 else total + value
    return total if total.requires_grad else None


def found_again(thing: Any, outputs: list[Any]) -> Any:
    if not isinstance(thing, View):
        return thing
    output = dict(leaves(outputs[thing.call], is_tensor))[thing.path]
    if thing.size is None:
        return output
    return output.as_strided(thing.size, thing.stride, output.storage_offset() + thing.offset)


def _twin(model: nn.Module) -> nn.Module:
    """Tensors that a layer keeps from its last forward belong to a graph, and cannot be copied as they are."""
    held = [t for m in model.modules() for _, t in leaves(dict(vars(m)), is_tensor) if t.grad_fn is not None]
    twin = deep_copy(model, {id(t): t.detach().clone() for t in held})
    for parameter in twin.parameters():
        parameter.grad = None
    return twin


def _same(one: float, other: float) -> bool:
    """Bit by bit in the loss's own precision; any NaN is like any other."""
    if one != one or other != other:
        return one != one and other != other
    try:
        return struct.pack("f", one) == struct.pack("f", other)
    except OverflowError:
        return one == other
