"""The cost of training steps: phases by stopwatch, layers by the time of their calls, memory by counting."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import keras

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.bench import KerasBench, held_by
from sleuth.adapters.keras.families import family_of
from sleuth.adapters.keras.inspecting.layer_calls import Visitor
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.sides import without_warnings
from sleuth.core.contract.adapter import Bench, Profiles
from sleuth.core.contract.workload import Cost, LayerWork, MemoryUse, Phases
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts

COMPILED = "on the jax backend a step is compiled as a whole: its layers have no time of their own"


class KerasProfiles(Profiles):
    def cost(self, bench: Bench, batches: Iterator[Parts], *, steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
        held = held_by(bench)
        last = None
        for last in islice(batches, warm_up):
            held.loss(last)
            held.step(last)
        phases = []
        for number in range(steps):
            tell(f"Step {number + 1} of {steps}")
            timed, last = _timed(held, batches)
            phases.append(timed)
        if last is None:
            raise Unsupported("no batch was given")
        tell("Looking at the layers")
        found = _layers(held, last, repeats=2)
        return Cost(tuple(phases), found if backend.name() == "torch" else (), _memory(held, last), _device(held))

    def work(self, bench: Bench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
        if backend.name() != "torch":
            raise Unsupported(COMPILED)
        return _layers(held_by(bench), batch, repeats)


def _timed(bench: KerasBench, batches: Iterator[Parts]) -> tuple[Phases, Parts]:
    """The forward pass is taken once alone: what gradients cost more than that is the backward's."""
    began = time.perf_counter()
    batch = next(batches)
    data = time.perf_counter() - began
    before = bench.snapshot()
    began = time.perf_counter()
    bench.loss(batch)
    forward = time.perf_counter() - began
    bench.restore(before)
    began = time.perf_counter()
    bench.gradients(batch)
    both = time.perf_counter() - began
    began = time.perf_counter()
    bench.apply(batch)
    return Phases(data, forward, max(both - forward, 0.0), time.perf_counter() - began), batch


def _layers(bench: KerasBench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
    kinds = {"": bench.model, **dict(layers(bench.model))}
    native, found = bench.native(batch), []
    for _ in range(max(repeats, 1)):
        visitor = Visitor(bench.model)
        began = time.perf_counter()
        with without_warnings(), visitor.following():
            bench.compute(native)
        found.append((time.perf_counter() - began, visitor))
    total, visitor = min(found, key=lambda one: one[0])
    seconds, flops, calls = _own(visitor, total)
    operations = _operations(bench, native) if backend.name() == "torch" else Counter[str]()
    return tuple(
        LayerWork(
            path,
            type(layer).__name__,
            family_of(layer),
            forward=max(seconds[path], 0.0),
            flops=flops[path],
            operations=operations[path],
            calls=max(calls[path], 1),
        )
        for path, layer in kinds.items()
        if path in calls or not path
    )


def _own(visitor: Visitor, total: float) -> tuple[dict[str, float], Counter[str], Counter[str]]:
    """Without what a visit called; what nobody visited, such as the loss, is the model's."""
    seconds, flops, calls = {"": total}, Counter[str](), Counter[str]()
    for note in visitor.noted:
        parent = visitor.noted[note.parent].path if note.parent is not None else ""
        seconds[note.path] = seconds.get(note.path, 0.0) + note.seconds
        seconds[parent] -= note.seconds
        flops[note.path] += note.flops
        flops[parent] -= note.flops if note.parent is not None else 0
        calls[note.path] += 1
    return seconds, flops, calls


def _operations(bench: KerasBench, native: Parts) -> Counter[str]:
    """Calls into torch, by the layer that made them."""
    from sleuth.adapters.torch.costs.work import Dispatched

    paths = {id(layer): path for path, layer in layers(bench.model)}
    stack: list[str] = []
    counted: Counter[str] = Counter()

    def calling(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            stack.append(paths.get(id(layer), stack[-1] if stack else ""))
            try:
                return plain(layer, *args, **kwargs)
            finally:
                stack.pop()

        return call

    def heard() -> None:
        counted[stack[-1] if stack else ""] += 1

    with without_warnings(), replaced(keras.layers.Layer, "__call__", calling), Dispatched(heard):
        bench.compute(native)
    return counted


def _memory(bench: KerasBench, batch: Parts) -> MemoryUse:
    hearing = Hearing(bench.model)
    with without_warnings(), hearing.listening():
        bench.compute(bench.native(batch))
    free = {id(v) for v in bench.model.trainable_variables}
    parameters = _bytes(v for v in bench.model.variables if id(v) in free)
    return MemoryUse(
        parameters=parameters,
        buffers=_bytes(v for v in bench.model.variables if id(v) not in free),
        gradients=parameters,
        optimiser=_bytes(bench.optimiser.variables) if bench.optimiser is not None else 0,
        activations=sum(made.values.nbytes for made in hearing.made),
        batch=sum(backend.values(a).nbytes for _, a in leaves(batch.raw, backend.is_array)),
        peak=None,
        growth=None,
    )


def _bytes(variables: Any) -> int:
    return sum(backend.values(v).nbytes for v in variables)


def _device(bench: KerasBench) -> str:
    return next((backend.device(v) for v in bench.model.variables), "cpu")
