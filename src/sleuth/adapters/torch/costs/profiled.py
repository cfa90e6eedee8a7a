"""Time of each layer forward and backward, and the peak of memory, from torch's own profiler."""

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function, supported_activities

from sleuth.adapters.torch.bench import TorchBench
from sleuth.adapters.torch.costs.work import layers_entered
from sleuth.core.subject import Parts

MARK = "sleuth:"
STEP = "sleuth-step"
BACKWARD = "autograd::engine::evaluate_function: "
MICROSECONDS = 1e-6


@dataclass
class Profiled:
    """Seconds a step. What belongs to no layer stands under ""."""

    forward: dict[str, float]
    backward: dict[str, float]
    peak: int | None = None  # bytes above what was there before
    growth: float | None = None


def profiled(bench: TorchBench, batches: list[Parts]) -> Profiled:
    """One step a batch, each layer marked by its path."""
    open_marks: list[Any] = []

    def enter(path: str) -> None:
        mark = record_function(MARK + path)
        mark.__enter__()
        open_marks.append(mark)

    def leave(path: str) -> None:
        if open_marks:
            open_marks.pop().__exit__(None, None, None)

    with hushed(), layers_entered(bench.model, enter, leave):
        with profile(activities=supported_activities(), profile_memory=True) as recorder:
            for batch in batches:
                with record_function(STEP):
                    bench.step(batch)
        events = list(recorder.events() or ())
        found = _by_layer(events, len(batches))
        if ProfilerActivity.CUDA not in supported_activities():
            found.peak, found.growth = _memory(recorder, events)
    return found


@contextmanager
def hushed() -> Iterator[None]:
    """The profiler's C++ code announces its start and stop on standard error, whatever one asks of it."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _by_layer(events: list[FunctionEvent], steps: int) -> Profiled:
    begins = sorted(event.time_range.start for event in events if event.name == STEP)
    forward: dict[str, list[float]] = defaultdict(lambda: [0.0] * steps)
    backward: dict[str, list[float]] = defaultdict(lambda: [0.0] * steps)
    made_by: dict[int, str] = {}  # the number of a forward operation → its layer
    for event in events:
        owner = _owner(event)
        if owner is not None:
            forward[owner][_step(event, begins)] += _own(event) * MICROSECONDS
            made_by.setdefault(event.sequence_nr, owner)
    made_by.pop(-1, None)  # has no number
    for event in events:
        if event.name.startswith(BACKWARD):
            spent = (event.cpu_time_total + event.device_time_total) * MICROSECONDS
            backward[made_by.get(event.sequence_nr, "")][_step(event, begins)] += spent
    # The quickest: whatever else the machine does makes single steps slower.
    quickest = [{path: min(times) for path, times in side.items()} for side in (forward, backward)]
    return Profiled(quickest[0], quickest[1])


def _step(event: FunctionEvent, begins: list[float]) -> int:
    return max(bisect_right(begins, event.time_range.start) - 1, 0)


def _own(event: FunctionEvent) -> float:
    return float(event.self_cpu_time_total + event.self_device_time_total)


def _owner(event: FunctionEvent) -> str | None:
    """The innermost layer that was at work; None for what is no part of a layer."""
    here: Any = event
    while here is not None:
        if here.name.startswith(MARK):
            return str(here.name.removeprefix(MARK))
        if here.name.startswith(BACKWARD):
            return None
        here = here.cpu_parent
    return None


def _memory(recorder: Any, events: list[FunctionEvent]) -> tuple[int | None, float | None]:
    """The highest that the last step got above its start, and what later steps left behind on the average."""
    held = peak = 0
    ends = sorted(e.time_range.end for e in events if e.name == STEP)
    raw = recorder.profiler.kineto_results
    start = raw.trace_start_ns()
    left: list[int] = []
    for event in sorted((e for e in raw.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        moment = (event.start_ns() - start) / 1000
        while ends and moment > ends[0]:
            ends.pop(0)
            left.append(held)
            if ends:
                peak = held
        held += event.nbytes()
        peak = max(peak, held)
    left += [held] * len(ends)
    before = left[-2] if len(left) > 1 else 0
    growth = (left[-1] - left[0]) / (len(left) - 1) if len(left) > 1 else None
    return peak - before, growth
