"""Which operation feeds which in one forward pass, from the ops that are listened to."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.bench import TorchBench, _native, quiet
from sleuth.adapters.torch.cuts import SHAPE_ONLY
from sleuth.adapters.torch.flow_operations import SAME, plain_name, read
from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts
from sleuth.core.trial import Flow, Operation

# A loop over a thousand steps of time is a graph that nobody reads any more.
MOST_OPERATIONS = 20_000
# Noise is data: what it is added to does not collapse, and a generator has no other input.
RANDOM = {
    "rand", "randn", "rand_like", "randn_like", "normal", "bernoulli", "poisson", "multinomial", "randint", "uniform",
    "exponential", "rsample", "sample",
}  # fmt: skip


class FlowNotes:
    """Every tensor is data (it comes from the inputs), a weight (made of parameters alone) or a constant."""

    def __init__(self, listener: Listener, model: nn.Module) -> None:
        self._listener = listener
        self._operations: list[Operation] = []
        self._outputs: tuple[int, ...] = ()
        self._made_by: dict[int, int] = {}  # data, by id of the tensor → operation
        self._written: dict[int, int] = {}  # by storage: an in-place op changes every tensor that shares the memory
        self._weights: dict[int, frozenset[str]] = {id(p): frozenset({name}) for name, p in model.named_parameters()}
        listener.on_op.append(self._op)
        listener.on_layer.append(self._left)

    def expect(self, tree: Any) -> None:
        """These tensors come from outside."""
        for path, tensor in leaves(tree, is_tensor):
            self._listener.alive.append(tensor)
            if id(tensor) not in self._made_by:
                self._add(Operation(path or "input", "input", (), tuple(tensor.shape)), [tensor])

    def flow(self) -> Flow:
        return Flow(tuple(self._operations), self._outputs)

    def _op(self, op: Op, output: Any) -> None:
        if len(self._operations) > MOST_OPERATIONS:
            raise Unsupported(f"one forward pass takes more than {MOST_OPERATIONS:,} operations")
        given = [t for _, t in leaves((list(op.args), dict(op.kwargs)), is_tensor)]
        made = [t for _, t in leaves(output, is_tensor)]
        name = plain_name(op)
        if op.name == "__setitem__" and given:
            made = given[:1]
        if not made or (name in SHAPE_ONLY and name not in RANDOM):
            return
        if name in RANDOM:
            self._add(Operation(op.name, "input", (), tuple(made[0].shape), op.layer, location=op.location), made)
            return
        sources = {id(t): at for t in given if (at := self._source(t)) is not None}
        if sources:
            self._note(op, output, given, made, sources)
        else:
            roots = frozenset().union(*(self._weights.get(id(t), frozenset()) for t in given))
            self._weights.update({id(t): roots for t in made if roots and id(t) not in self._weights})

    def _note(self, op: Op, output: Any, given: list[torch.Tensor], made: list[torch.Tensor], sources: dict[int, int]) -> None:
        weights = [t for t in given if id(t) in self._weights and id(t) not in sources]
        returned = all(any(t is g for g in given) for t in made)
        if returned and op.name in SAME:
            return  # `x.contiguous()` may return x itself: nothing was made
        reading = read(op, [t for t in given if id(t) in sources], weights, output)
        if op.name == "__setitem__":
            reading = replace(reading, family="other", axes=None)
        operation = Operation(
            name=op.name,
            family=reading.family,
            sources=tuple(dict.fromkeys(sources.values())),
            shape=tuple(made[0].shape),
            layer=op.layer,
            parameters=self._names(weights),
            settings=reading.settings,
            location=op.location,
            axes=reading.axes,
        )
        self._add(operation, made)
        if returned:
            self._written |= {_storage(t): len(self._operations) - 1 for t in made}

    def _names(self, weights: list[torch.Tensor]) -> tuple[str, ...]:
        by_rank = sorted(weights, key=lambda tensor: -tensor.dim())
        return tuple(dict.fromkeys(name for tensor in by_rank for name in sorted(self._weights[id(tensor)])))

    def _source(self, tensor: torch.Tensor) -> int | None:
        at = self._made_by.get(id(tensor))
        if at is None:
            if id(tensor) in self._weights or not tensor.requires_grad:
                return None
            # Made where torch does not tell: in NumPy or compiled code, or from weights that another model owns.
            at = self._add(Operation("unseen", "other", (), tuple(tensor.shape)), [tensor])
        return max(at, self._written.get(_storage(tensor), at)) if self._written else at

    def _add(self, operation: Operation, made: list[torch.Tensor]) -> int:
        self._operations.append(operation)
        self._made_by.update({id(t): len(self._operations) - 1 for t in made})
        return len(self._operations) - 1

    def _left(self, path: str, module: nn.Module, output: Any) -> None:
        if not self._listener.outside:
            return
        ended = {at for _, t in leaves(output, is_tensor) if (at := self._source(t)) is not None}
        for at in ended:
            self._operations[at] = replace(self._operations[at], leaves=True)
        if not path:
            self._outputs = tuple(sorted(ended))


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr()) or id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse and meta tensors have none
        return id(tensor)


def flow(bench: TorchBench, batch: Parts) -> Flow:
    listener = Listener(bench.model)
    notes = FlowNotes(listener, bench.model)
    batch = _native(batch)
    notes.expect(batch.inputs if bench._step is None else batch.raw)
    with quiet(), torch.enable_grad(), listener.listening():
        if bench._step is None:
            bench._call(batch.inputs)
        else:
            bench._step(bench.model, batch.raw)
    return notes.flow()
