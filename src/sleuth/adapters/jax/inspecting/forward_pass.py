"""One forward pass, visit by visit: shapes, operations, time, and what it failed of."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.jax.failure import explain
from sleuth.adapters.jax.inspecting.counting import flops
from sleuth.adapters.jax.inspecting.layer_calls import Follower, doors
from sleuth.adapters.jax.inspecting.model_copy import Guest
from sleuth.adapters.jax.layer_marks import Marks
from sleuth.adapters.jax.trace import Trace
from sleuth.core.contract.inspection import Door, Passage, Visit

# The least of so many passes is one that nothing disturbed.
TIMED_PASSES = 5
TIMED_SECONDS = 10.0


def passage(model: Any, inputs: Any, *, timed: bool = False, as_is: bool = False) -> Passage:
    guest = Guest(model, inputs, as_is=as_is)
    try:
        trace = guest.trace()
    except Exception as error:
        failure = explain(error, "forward", guest.progress.marks.failed_in)
        return Passage(visits(guest), failure, flops_counted=False)
    counts, known = _flops(trace)
    made = visits(guest, counts, trace)
    return Passage(_timed(guest, made) if timed else made, flops_counted=known)


def visits(guest: Guest, counts: dict[int, int] | None = None, trace: Trace | None = None) -> tuple[Visit, ...]:
    """Of layers; a model without any is one visit."""
    marks, calls = guest.progress.marks, guest.follower.calls
    place = {number: at for at, number in enumerate(calls)}
    found = [
        Visit(
            marks.visits[number].path,
            None if call.parent is None else place[call.parent],
            call.inputs,
            call.outputs,
            (counts or {}).get(number, 0),
            finished=call.finished,
        )
        for number, call in calls.items()
    ]
    if found:
        return tuple(found)
    outputs = () if trace is None else _returned(trace)
    return (Visit("", None, doors(guest.inputs), outputs, (counts or {}).get(-1, 0), finished=trace is not None),)


def _returned(trace: Trace) -> tuple[Door, ...]:
    tape = trace.tape
    return tuple(Door("", tape.shapes[slot], str(tape.dtypes[slot])) for slot in trace.outputs())


def _flops(trace: Trace) -> tuple[dict[int, int], bool]:
    """By visit; -1 stands for the whole."""
    counts: dict[int, int] = {}
    known = True
    for entry in trace.tape.entries:
        each = flops(entry.equation)
        known = known and each is not None
        for visit in {*entry.visits, -1}:
            counts[visit] = counts.get(visit, 0) + (each or 0)
    return counts, known


def _timed(guest: Guest, known: tuple[Visit, ...]) -> tuple[Visit, ...]:
    """Operation by operation and layer by layer: compiled as a whole, a layer has no time of its own."""
    bench = guest.bench
    passes: list[list[float]] = []
    began = time.perf_counter()
    _once(guest)
    while len(passes) < TIMED_PASSES and (not passes or time.perf_counter() - began < TIMED_SECONDS):
        passes.append(_once(guest))
    alike = [p for p in passes if len(p) == len(known)]
    if not alike or not bench.form.modules(bench.subject.model):
        return known
    return tuple(replace(v, seconds=float(s)) for v, s in zip(known, np.min(alike, axis=0), strict=True))


def _once(guest: Guest) -> list[float]:
    bench, follower = guest.bench, Follower(timed=True)
    bench.program.forward(bench.params, bench.rest, guest.inputs, bench.training, Marks(follower=follower))
    return [call.seconds for call in follower.calls.values()]
