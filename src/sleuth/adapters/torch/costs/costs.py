"""The cost of training steps: phases by stopwatch, layers by the profiler, memory by counting."""

import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Any

import torch

from sleuth.adapters.torch.architecture import family_of
from sleuth.adapters.torch.bench import TorchBench
from sleuth.adapters.torch.costs.profiled import Profiled, profiled
from sleuth.adapters.torch.costs.work import Counts, synchroniser, work
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.core.contract.adapter import Bench, Profiles
from sleuth.core.contract.workload import Cost, LayerWork, MemoryUse, Phases
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts

# Steps under the profiler: enough to see whether they leave something behind.
PROFILED = 5


class TorchProfiles(Profiles):
    def cost(self, bench: Bench, batches: Iterator[Parts], *, steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
        if not isinstance(bench, TorchBench):
            raise Unsupported("this bench does not hold a torch model")
        return _cost(bench, batches, steps, warm_up, tell)

    def work(self, bench: Bench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
        if not isinstance(bench, TorchBench):
            raise Unsupported("this bench does not hold a torch model")
        return work(bench, batch, repeats)


def _cost(bench: TorchBench, batches: Iterator[Parts], steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
    kept: list[Parts] = []
    for batch in islice(batches, warm_up):
        bench.step(batch)
        kept.append(batch)
    phases = []
    for number in range(steps):
        tell(f"Step {number + 1} of {steps}")
        step, batch = _timed(bench, batches)
        phases.append(step)
        kept = [*kept, batch][-PROFILED:]
    tell("Looking at the layers")
    counts = Counts(bench, kept[-1])
    found = profiled(bench, [kept[i % len(kept)] for i in range(PROFILED)])
    peak_on_device = _peak_on_device(bench, kept[-1])
    used = _memory(bench, kept[-1], counts, found, peak_on_device)
    return Cost(tuple(phases), _layers(bench, counts, found), used, _device(bench))


def _timed(bench: TorchBench, batches: Iterator[Parts]) -> tuple[Phases, Parts]:
    wait = synchroniser(bench)
    moments = [time.perf_counter()]

    def lap() -> None:
        wait()
        moments.append(time.perf_counter())

    batch = next(batches)
    lap()
    bench.clear_gradients()
    loss = bench.compute(batch)
    lap()
    loss.backward()
    lap()
    bench.apply(batch)
    lap()
    return Phases(*(after - before for before, after in pairwise(moments))), batch


def _layers(bench: TorchBench, counts: Counts, found: Profiled) -> tuple[LayerWork, ...]:
    return tuple(
        LayerWork(
            path,
            type(module).__name__,
            family_of(module),
            found.forward.get(path, 0.0),
            found.backward.get(path, 0.0),
            counts.flops[path],
            counts.operations[path],
            counts.saved[path],
        )
        for path, module in bench.model.named_modules()
        if path in found.forward or path in found.backward
    )


def _memory(bench: TorchBench, batch: Parts, counts: Counts, found: Profiled, on_device: int | None) -> MemoryUse:
    bench.gradients(batch)
    gradients = _bytes(p.grad for p in bench.model.parameters())
    optimiser = bench.optimiser
    state = [v for s in optimiser.state.values() for _, v in leaves(s, is_tensor)] if optimiser is not None else []
    parameters, buffers = _bytes(bench.model.parameters()), _bytes(bench.model.buffers())
    read = _bytes(t for _, t in leaves(batch.raw, is_tensor))
    held = parameters + buffers + _bytes(state) + read
    peak = on_device if on_device is not None else None if found.peak is None else held + found.peak
    return MemoryUse(parameters, buffers, gradients, _bytes(state), counts.saved.total(), read, peak, found.growth)


def _peak_on_device(bench: TorchBench, batch: Parts) -> int | None:
    if not _device(bench).startswith("cuda"):
        return None
    torch.cuda.reset_peak_memory_stats()
    bench.step(batch)
    return torch.cuda.max_memory_allocated()


def _bytes(tensors: Any) -> int:
    """Of memory that several share once."""
    storages = {
        t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t is not None and not t.is_sparse
    }
    return sum(storages.values())


def _device(bench: TorchBench) -> str:
    return next((str(p.device) for p in bench.model.parameters()), "cpu")
