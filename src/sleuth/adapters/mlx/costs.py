"""The cost of training steps. MLX is lazy: each phase and each layer ends with an evaluation of its own, so that its time is its
own. What MLX would compute together takes a little longer that way."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from math import ceil
from typing import Any

import mlx.core as mx

from sleuth.adapters.mlx.arrays import arrays_in, native
from sleuth.adapters.mlx.bench import MlxBench, own_bench
from sleuth.adapters.mlx.inspecting.layer_calls import Visitor
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.model_parts import is_buffer, modules, parameters
from sleuth.adapters.mlx.operations import Operations
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.core.contract.adapter import Bench, Profiles
from sleuth.core.contract.workload import Cost, LayerWork, MemoryUse, Phases
from sleuth.core.subject import Parts

LAYER_REPEATS = 5


class MlxProfiles(Profiles):
    def cost(self, bench: Bench, batches: Iterator[Parts], *, steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
        held = own_bench(bench)
        for batch in islice(batches, warm_up):
            held.step(batch)
        phases, active = [], []
        mx.reset_peak_memory()
        for number in range(steps):
            tell(f"Step {number + 1} of {steps}")
            step, batch = _timed(held, batches)
            phases.append(step)
            active.append(mx.get_active_memory())
        peak = mx.get_peak_memory()
        tell("Looking at the layers")
        late = active[ceil(steps / 2) :]
        growth = (late[-1] - late[0]) / (len(late) - 1) if len(late) > 1 else None
        used = _memory(held, batch, peak, growth)
        return Cost(tuple(phases), _layers(held, batch, phases), used, str(mx.default_device().type).removeprefix("DeviceType."))

    def work(self, bench: Bench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
        held = own_bench(bench)
        mx.eval(arrays_in(native(batch).inputs))
        passes = [_seconds(held, batch) for _ in range(max(repeats, 1))]
        visitor = passes[0][0]
        # Layer by layer: each evaluation waits for another thread, which something else may keep waiting now and then.
        own = {path: min(p[1][path] for p in passes) for path in passes[0][1]}
        outside = min(p[2] for p in passes)
        counted = Operations(held.model)
        with counted.listening():
            held.compute(batch)
        operations = Counter(o.layer for o in counted.heard)
        calls = Counter(note.path for note in visitor.noted)
        flops: Counter[str] = Counter()
        for i, note in enumerate(visitor.noted):
            flops[note.path] += note.flops - sum(other.flops for other in visitor.noted if other.parent == i)
        return tuple(
            LayerWork(
                path,
                type(module).__name__,
                family_of(module),
                own.get(path, 0.0) + (0.0 if path else outside),
                flops=flops[path],
                operations=operations[path],
                calls=max(calls[path], 1),
            )
            for path, module in modules(held.model)
            if not path or calls[path]
        )


def _seconds(bench: MlxBench, batch: Parts) -> tuple[Visitor, Counter[str], float]:
    """Of each layer without those that it calls, and of what no layer does: the loss."""
    visitor = Visitor(bench.model, timed=True)
    began = time.perf_counter()
    with visitor.following():
        mx.eval(bench.compute(batch))
    total = time.perf_counter() - began
    own: Counter[str] = Counter()
    for i, note in enumerate(visitor.noted):
        inner = sum(other.seconds for other in visitor.noted if other.parent == i)
        own[note.path] += max(note.seconds - inner, 0.0)  # type: ignore[assignment]
    inside = sum(note.seconds for note in visitor.noted if note.parent is None)
    return visitor, own, max(total - inside, 0.0)


def _timed(bench: MlxBench, batches: Iterator[Parts]) -> tuple[Phases, Parts]:
    """The backward cannot be run alone: it is what a gradient takes beyond a forward of the same batch."""
    begin = time.perf_counter()
    batch = next(batches)
    data = time.perf_counter() - begin
    forward = _spent(lambda: mx.eval(bench.compute(batch)))
    whole = _spent(lambda: bench.differentiate(batch))
    optimiser = _spent(lambda: bench.apply(batch))
    return Phases(data, forward, max(whole - forward, 0.0), optimiser), batch


def _spent(act: Callable[[], Any]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _layers(bench: MlxBench, batch: Parts, phases: list[Phases]) -> tuple[LayerWork, ...]:
    """A backward is not told layer by layer: it is shared out as the forward is."""
    found = MlxProfiles().work(bench, batch, LAYER_REPEATS)
    forward, backward = sum(w.forward for w in found), min(p.backward for p in phases)
    return tuple(replace(w, backward=backward * w.forward / forward if forward else 0.0) for w in found)


def _memory(bench: MlxBench, batch: Parts, peak: int, growth: float | None) -> MemoryUse:
    hearing = Hearing(bench.model, places=False)
    with hearing.listening():
        mx.eval(bench.compute(batch), [m.array for m in hearing.made])
    outputs = {id(m.array): m.array.nbytes for m in hearing.made}
    entries = parameters(bench.model)
    own = [e for e in entries if not is_buffer(e)]
    return MemoryUse(
        parameters=sum(e.array.nbytes for e in own),
        buffers=sum(e.array.nbytes for e in entries if is_buffer(e)),
        gradients=sum(e.array.nbytes for e in own if e.trainable),
        optimiser=sum(a.nbytes for a in arrays_in(bench.optimiser.state)),
        activations=sum(outputs.values()),
        batch=sum(a.nbytes for a in arrays_in((native(batch).inputs, native(batch).target))),
        peak=peak,
        growth=growth,
    )
