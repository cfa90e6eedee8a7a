"""Where the graph between the parameters and the loss is cut, from the ops of one listened step.

A cut is an op that gets a tensor with a graph and returns one without. Only cuts whose values flow into the loss are told:
the detach of a metric is nobody's business.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import _SingleLevelFunction

from sleuth.adapters.torch.bench import TorchBench, quiet
from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.adapters.torch.place import current_location
from sleuth.adapters.torch.unregistered_parameters import UnregisteredNotes
from sleuth.core.location import Location
from sleuth.core.observation import Stray
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection, Cut

# They take the shape of a tensor and none of its values.
SHAPE_ONLY = {
    "zeros_like", "ones_like", "rand_like", "randn_like", "randint_like", "empty_like", "full_like", "new_zeros", "new_ones",
    "new_empty", "new_full", "shape", "size", "requires_grad", "is_leaf", "grad_fn", "grad", "dim", "is_nested",
}  # fmt: skip
# Their gradient is zero everywhere: the graph goes on and carries nothing.
FLAT = {
    "round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "heaviside", "bernoulli", "floor_divide", "__floordiv__", "round_",
    "floor_", "ceil_", "trunc_", "sign_",
}  # fmt: skip
# Each output belongs to its own input alone.
SIDE_BY_SIDE = {"broadcast_tensors", "meshgrid", "align_tensors"}
# Values that leave torch here cannot be followed; the ones that come back may be the cut.
LEAVING = {"numpy": 0, "__array__": 0, "tolist": 0, "item": 1, "__float__": 1, "__int__": 1, "__index__": 1}


@dataclass
class Trail:
    """What a tensor's values depend on: parameters by id, and the cuts they passed."""

    roots: set[int] = field(default_factory=set)
    cuts: set[int] = field(default_factory=set)

    def join(self, other: "Trail") -> None:
        self.roots |= other.roots
        self.cuts |= other.cuts


@dataclass(frozen=True)
class Found:
    operation: str
    layer: str
    location: Location | None
    roots: frozenset[int]
    flat: bool = False  # the graph goes on, with a gradient of zero


class CutNotes:
    def __init__(self, listener: Listener, model: nn.Module) -> None:
        self.found: list[Found] = []
        self.left: list[Found] = []
        self.custom: list[str] = []
        self.touched: set[int] = set()
        self._listener = listener
        self._trails: dict[int, Trail] = {}
        self._written: dict[int, Trail] = {}  # by storage: an in-place op changes every tensor that shares the memory
        self._stored: dict[int, Trail] = {}  # by storage: for tensors that were wrapped anew where no op is seen
        self._live: set[int] = set()
        self._place: Location | None = None  # of the op that is looked at
        self._inside = 0  # within the forward of a hand-written Function, which runs without a graph by design
        for parameter in model.parameters():
            if parameter.requires_grad:
                self._trails[id(parameter)] = Trail({id(parameter)})
                self._live.add(id(parameter))
        listener.on_op.append(self._op)

    def derived(self) -> set[int]:
        """By id: tensors whose values come from parameters of the model."""
        return {i for i, trail in self._trails.items() if trail.roots}

    def trail(self, tree: Any) -> Trail:
        return self._joined([t for _, t in leaves(tree, is_tensor)])

    def _joined(self, tensors: list[torch.Tensor]) -> Trail:
        whole = Trail()
        for tensor in tensors:
            if id(tensor) not in self._trails:
                self._wrapped(tensor)
            for trail in (self._trails.get(id(tensor)), self._written.get(_storage(tensor)) if self._written else None):
                if trail is not None:
                    whole.join(trail)
        return whole

    def _wrapped(self, tensor: torch.Tensor) -> None:
        """`nn.Parameter(h)` and `Variable(h)` are no ops: known values come back as a tensor that nothing made."""
        behind = self._stored.get(_storage(tensor))
        if behind is None or (tensor.requires_grad and not tensor.is_leaf):
            return
        own = Trail(set(behind.roots), set(behind.cuts))
        if not self._inside and not any(own.roots <= self.found[i].roots for i in own.cuts):
            own.cuts.add(len(self.found))
            self.found.append(Found("wrapped", self._listener.layer, self._place, frozenset(own.roots)))
        self._remember(tensor, own)
        self._live.discard(id(tensor))

    def _op(self, op: Op, output: Any) -> None:
        given = [t for _, t in leaves((list(op.args), dict(op.kwargs)), is_tensor)]
        self._place = op.location
        if op.name == "new_tensor":
            given = given[1:]
        elif op.name in SIDE_BY_SIDE:
            made = [t for _, t in leaves(output, is_tensor)]
            for one, other in zip(given, made, strict=False):
                self._remember(other, self._joined([one]))
            return
        trail = self._joined(given)
        self.touched |= trail.roots & set(op.inputs)
        if not trail.roots or op.name in SHAPE_ONLY:
            return
        live = any(id(t) in self._live or t.requires_grad for t in given)
        if op.name in LEAVING:
            # Whoever takes the values out of the graph first, to hand them to NumPy elsewhere, does it there.
            place = next((self.found[i] for i in sorted(trail.cuts) if not self.found[i].flat), None)
            left = (op.layer, op.location) if place is None else (place.layer, place.location)
            self.left.append(Found(op.name, *left, frozenset(trail.roots)))
        self._spread(op.name, op.layer, op.location, trail, live, given, [t for _, t in leaves(output, is_tensor)])

    def _spread(
        self,
        name: str,
        layer: str,
        location: Location | None,
        trail: Trail,
        live: bool,
        given: list[torch.Tensor],
        made: list[torch.Tensor],
    ) -> None:
        known = {id(t) for t in given}
        for tensor in made:
            own = Trail(set(trail.roots), set(trail.cuts))
            in_place = id(tensor) in known
            cut = live and not self._inside and (not tensor.requires_grad or (tensor.is_leaf and not in_place))
            if cut:
                own.cuts.add(len(self.found))
                self.found.append(Found(_cause(name), layer, location, frozenset(own.roots)))
            elif live and not self._inside and name in FLAT:
                own.cuts.add(len(self.found))
                self.found.append(Found(name.strip("_"), layer, location, frozenset(own.roots), flat=True))
            self._remember(tensor, own)
        if given and (name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))):
            self._written.setdefault(_storage(given[0]), Trail()).join(trail)

    def _remember(self, tensor: torch.Tensor, trail: Trail) -> None:
        self._trails.setdefault(id(tensor), Trail()).join(trail)
        if trail.roots and not isinstance(tensor, nn.Parameter):
            self._stored[_storage(tensor)] = self._trails[id(tensor)]
        if tensor.requires_grad:
            self._live.add(id(tensor))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """With every hand-written Function seen as one op; put back on every way out.

        Beneath `Function.apply`, because that may have been taken before: `loss = Mine.apply` is the usual way to hand one over.
        """
        notes = self

        def apply(cls: type[Function], *args: Any, **kwargs: Any) -> Any:
            given = [t for _, t in leaves((list(args), dict(kwargs)), is_tensor)]
            trail = notes._joined(given)
            notes.touched |= trail.roots & {id(t) for t in given}
            notes._inside += 1
            try:
                output = super(_SingleLevelFunction, cls).apply(*args, **kwargs)  # type: ignore[misc]
            finally:
                notes._inside -= 1
            notes.custom.append(cls.__name__)
            made = [t for _, t in leaves(output, is_tensor)]
            notes._listener.alive += given + made
            notes._spread(cls.__name__, notes._listener.layer, current_location(), trail, False, given, made)
            return output

        _SingleLevelFunction.apply = classmethod(apply)  # type: ignore[attr-defined]
        try:
            with self._listener.listening():
                yield
        finally:
            del _SingleLevelFunction.apply  # type: ignore[attr-defined]


def _cause(name: str) -> str:
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return name if torch.is_grad_enabled() else "no_grad"


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr()) or id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse and meta tensors have none
        return id(tensor)


def connection(bench: TorchBench, batch: Parts) -> Connection:
    """One step op by op, and its backward."""
    listener = Listener(bench.model)
    notes = CutNotes(listener, bench.model)
    unregistered = UnregisteredNotes(listener, bench.known_parameters(), (batch.inputs, batch.target, batch.raw))
    bench.model.zero_grad(set_to_none=True)
    with quiet(), torch.enable_grad(), notes.listening():
        loss = bench._compute(batch)
    error = None
    if loss.requires_grad:
        loss.backward()
    else:
        error = "nothing that the loss was computed from needs a gradient"
    parameters = {name: p for name, p in bench.model.named_parameters() if p.requires_grad}
    flat = set().union(*(notes.found[i].roots for i in notes.trail(loss).cuts if notes.found[i].flat))
    missing = {id(p): name for name, p in parameters.items() if p.grad is None or (id(p) in flat and not p.grad.any())}
    unused = {name.rpartition(".")[0] for i, name in missing.items() if i not in notes.touched}
    bench.model.zero_grad(set_to_none=True)
    return Connection(
        parameters=len(parameters),
        without_gradient=tuple(missing.values()),
        cuts=tuple(cuts_of(notes, notes.trail(loss), missing)),
        unused_layers=tuple(sorted(unused)),
        error=error,
        custom=tuple(sorted(set(notes.custom))),
        strangers=(*unregistered.strays(notes.derived()), *_late(bench)),
    )


def _late(bench: TorchBench) -> Iterator[Stray]:
    """Registered at the first call of forward: an optimiser that was made before does not hold them."""
    held = bench.known_parameters()
    late = {n: p for n, p in bench.model.named_parameters() if n not in bench.first_names and p.requires_grad}
    fresh = {n: p for n, p in late.items() if bench.has_users_optimiser and id(p) not in held}
    if fresh:
        yield Stray(
            next(iter(fresh)).rpartition(".")[0] or next(iter(fresh)), "first call", sum(p.numel() for p in fresh.values())
        )


def cuts_of(notes: CutNotes, trail: Trail, missing: dict[int, str]) -> Iterator[Cut]:
    """Cuts that flow into the loss, the one that takes most parameters away first. Where there is none, the places
    at which values of a parameter without gradient left torch."""
    certain = [notes.found[i] for i in sorted(trail.cuts)]
    told = [_told(found, missing, True) for found in certain]
    if not any(cut.parameters for cut in told):
        left = sorted(notes.left, key=lambda f: LEAVING[f.operation])
        told += [_told(f, missing, False) for f in left if f.roots & missing.keys()]
    yield from sorted(told, key=lambda cut: (not cut.certain, -len(cut.parameters)))


def _told(found: Found, missing: dict[int, str], certain: bool) -> Cut:
    behind = tuple(name for i, name in missing.items() if i in found.roots)
    return Cut(found.operation, found.layer or None, found.location, certain, behind)
