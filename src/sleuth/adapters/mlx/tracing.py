"""One step looked at operation by operation, on a bench."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.arrays import arrays_in, as_mlx
from sleuth.adapters.mlx.bench import MlxBench
from sleuth.adapters.mlx.flow import FlowNotes
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.operations import Operation, Operations
from sleuth.adapters.mlx.origin import born_backward, born_forward
from sleuth.adapters.mlx.underscore_layers import hidden_at_work
from sleuth.core.observation import Origin
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection, Cut, Flow

# What ends a gradient, and the word that others have for it.
CUTS = {
    "stop_gradient": "detach", "argmax": "argmax", "argmin": "argmin", "argsort": "argsort", "argpartition": "argsort",
    "round": "round", "floor": "floor", "ceil": "ceil", "sign": "sign", "item": "item", "tolist": "tolist",
}  # fmt: skip


def connection(bench: MlxBench, batch: Parts) -> Connection:
    bench.forget_reach()
    missing = tuple(path for path, gradient in bench.gradients(batch).by_path.items() if gradient is None)
    notes = Operations(bench.model)
    before = bench.snapshot()
    try:
        with notes.listening():
            bench.compute(batch)
    finally:
        bench.restore(before)
    called = {o.layer for o in notes.heard}
    unused = [path for path, module in modules(bench.model) if path and not _is_used(path, module, called)]
    cuts = cuts_of(bench.model, notes.heard, missing)
    hidden = hidden_at_work(bench.model, notes.heard)
    return Connection(len(bench.paths()), missing, cuts, tuple(unused), strangers=hidden or None)


def _is_used(path: str, module: nn.Module, called: set[str]) -> bool:
    return family_of(module) == "container" or any(layer == path or layer.startswith(f"{path}.") for layer in called)


def cuts_of(model: nn.Module, heard: list[Operation], without_gradient: Sequence[str]) -> tuple[Cut, ...]:
    """Operations without a gradient whose values are made of what these parameters, by their layers, computed."""
    missing = {e.path: e.layer for e in parameters(model) if e.path in without_gradient}
    behind: dict[int, set[str]] = {}
    found = []
    for operation in heard if missing else ():
        own = {path for path, layer in missing.items() if layer == operation.layer}
        carried = own.union(*(behind.get(id(a), set()) for a in operation.given))
        if carried and operation.name in CUTS and operation.location is not None:
            names = tuple(path for path in missing if path in carried)
            found.append(Cut(CUTS[operation.name], operation.layer or None, operation.location, True, names))
            continue
        for made in operation.made:
            behind[id(made)] = behind.get(id(made), set()) | carried
    return tuple(found)


def flow(bench: MlxBench, batch: Parts) -> Flow:
    inputs = as_mlx(batch.inputs)
    notes = FlowNotes(bench.model)
    notes.expect(inputs)
    heard = Operations(bench.model, whole=lambda module: family_of(module) not in ("container", "other"))
    with heard.listening():
        output = bench.call(inputs)
    for operation in heard.heard:
        notes.take(operation)
    return notes.flow(output)


def origin(bench: MlxBench, batch: Parts) -> Origin | None:
    before = bench.snapshot()
    try:
        if not _is_finite(bench, batch):
            return None  # it was handed in
        found = born_forward(bench.model, lambda: bench.compute(batch), 0)
        bench.restore(before)
        return found or _backward(bench, batch)
    finally:
        bench.restore(before)


def _backward(bench: MlxBench, batch: Parts) -> Origin | None:
    found = bench.gradients(batch).by_path.values()
    if all(bool(mx.all(mx.isfinite(g)).item()) for g in found if g is not None):
        return None
    return born_backward(bench.model, lambda: bench.compute(batch), 0)


def _is_finite(bench: MlxBench, batch: Parts) -> bool:
    given: list[Any] = [*arrays_in(as_mlx((batch.inputs, batch.target))), *arrays_in(bench.model.parameters())]
    return all(bool(mx.all(mx.isfinite(a)).item()) for a in given if mx.issubdtype(a.dtype, mx.floating))
