"""What a step of a hand-written model costs: time by phase and by layer, operations that its lines call, memory of its arrays."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sleuth.adapters.numpy.bench import NumpyBench
from sleuth.adapters.numpy.describing import describe
from sleuth.adapters.numpy.inspecting.forward_pass import flops_of
from sleuth.adapters.numpy.inspecting.layer_calls import Note, Visitor
from sleuth.adapters.numpy.state import reach
from sleuth.core.contract.adapter import Bench, Profiles
from sleuth.core.contract.workload import Cost, LayerWork, MemoryUse, Phases
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts, Subject


class NumpyProfiles(Profiles):
    def cost(self, bench: Bench, batches: Iterator[Parts], *, steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
        mine = _mine(bench)
        phases: list[Phases] = []
        batch: Parts | None = None
        for number in range(warm_up + steps):
            began = time.perf_counter()
            batch = next(batches)
            waited = time.perf_counter() - began
            taken = _phases(mine, batch, waited)
            if number >= warm_up:
                phases.append(taken)
            tell(f"step {number + 1} of {warm_up + steps}")
        assert batch is not None
        return Cost(tuple(phases), self.work(bench, batch, 1, backward=True), _memory(mine, batch), "cpu")

    def work(self, bench: Bench, batch: Parts, repeats: int, *, backward: bool = False) -> tuple[LayerWork, ...]:
        mine = _mine(bench)
        run: Callable[[], Any] = (lambda: mine.gradients(batch)) if backward else (lambda: mine.loss(batch))
        run()
        counted = Visitor(mine.model)
        with counted.counting():
            run()
        times = []
        for _ in range(max(1, repeats)):
            visitor = Visitor(mine.model)
            whole = -time.perf_counter()
            with visitor.following():
                run()
            whole += time.perf_counter()
            if len(visitor.notes) == len(counted.notes):
                times.append((whole, [_own(visitor.notes, i) for i in range(len(visitor.notes))]))
        if not times:
            raise Unsupported("the model does not call the same layers every time")
        # All of one pass: the least of each layer from different ones would leave what disturbed them to the rest.
        whole, own = min(times, key=lambda one: one[0])
        return tuple(_layers(mine, counted.notes, whole, np.asarray(own)))


def _mine(bench: Bench) -> NumpyBench:
    if not isinstance(bench, NumpyBench):
        raise Unsupported("this bench does not hold a hand-written model")
    return bench


def _own(notes: list[Note], place: int) -> float:
    """Without what it called."""
    return notes[place].seconds - sum(n.seconds for n in notes if n.parent == place)


def _layers(bench: NumpyBench, notes: list[Note], whole: float, own: np.ndarray) -> Iterator[LayerWork]:
    told = describe(Subject(bench.model, None))
    kinds = {layer.path: (layer.kind, layer.family) for layer in told.layers}
    kinds.setdefault("", (type(bench.model).__name__, "container"))
    outside = max(0.0, whole - float(own.sum()))
    for path in dict.fromkeys(["", *(note.path for note in notes)]):
        mine = [(note, float(seconds)) for note, seconds in zip(notes, own, strict=True) if note.path == path]
        forward = [(note, s) for note, s in mine if note.way == "forward"]
        yield LayerWork(
            path,
            *kinds.get(path, ("", "other")),
            sum(s for _, s in forward) + (outside if path == "" else 0.0),
            sum(s for note, s in mine if note.way == "backward"),
            flops=sum(flops_of(note, told) for note, _ in forward),
            operations=sum(note.operations for note, _ in forward),
            saved=sum(a.nbytes for note, _ in forward for _, a in leaves(note.output, _is_array)),
            calls=max(1, len(forward)),
        )


def _phases(bench: NumpyBench, batch: Parts, waited: float) -> Phases:
    if bench.takes_whole_steps:
        began = time.perf_counter()
        bench.step(batch)
        return Phases(waited, time.perf_counter() - began, 0.0, 0.0)
    visitor = Visitor(bench.model)
    began = time.perf_counter()
    with visitor.following():
        bench.gradients(batch)
    differentiated = time.perf_counter()
    bench.apply(batch)
    ended = time.perf_counter()
    back = sum(n.seconds for n in visitor.notes if n.way == "backward" and not _inside_backward(visitor.notes, n))
    return Phases(waited, differentiated - began - back, back, ended - differentiated)


def _inside_backward(notes: list[Note], note: Note) -> bool:
    return note.parent is not None and notes[note.parent].way == "backward"


def _memory(bench: NumpyBench, batch: Parts) -> MemoryUse:
    weights = [bench.parameter(path) for path in bench.paths()]
    own = {id(a) for a in weights}
    gradients = bench.gradients(batch).by_path
    held = [a for a in reach(bench.optimiser) if _is_array(a) and id(a) not in own]
    visitor = Visitor(bench.model)
    with visitor.following():
        bench.loss(batch)
    outputs = {id(a): a for n in visitor.notes for _, a in leaves(n.output, _is_array)}
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        bench.step(batch)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        if not tracing:
            tracemalloc.stop()
    return MemoryUse(
        parameters=sum(a.nbytes for a in weights),
        buffers=0,
        gradients=sum(np.asarray(g).nbytes for g in gradients.values() if g is not None),
        optimiser=sum(a.nbytes for a in held),
        activations=sum(a.nbytes for a in outputs.values()),
        batch=sum(a.nbytes for _, a in leaves((batch.inputs, batch.target), _is_array)),
        peak=peak + sum(a.nbytes for a in (*weights, *held)),
        growth=None,
    )


def _is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray)
