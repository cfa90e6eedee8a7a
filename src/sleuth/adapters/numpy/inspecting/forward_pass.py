"""One forward pass of a guest: shapes, operations by layer, time, and what it failed of."""

from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.common.flops import layer_flops
from sleuth.adapters.numpy.describing import describe
from sleuth.adapters.numpy.failure import explain
from sleuth.adapters.numpy.inspecting.layer_calls import Note, Visitor
from sleuth.adapters.numpy.inspecting.model_copy import ask, guest
from sleuth.core.contract.inspection import Passage, Visit
from sleuth.core.observation import Architecture
from sleuth.core.subject import Subject

# The least of so many passes is one that nothing disturbed.
TIMED_PASSES = 7


@np.errstate(all="ignore")
def passage(model: Any, inputs: Any, *, timed: bool = False, as_is: bool = False) -> Passage:
    with guest(model, as_is=as_is) as visited:
        visitor, failure = Visitor(visited), None
        try:
            with visitor.following():
                ask(visited, inputs, training=as_is)
        except Exception as error:
            failure = explain(error, "forward", visited)
        told = describe(Subject(visited, None))
        visits = visits_of(visitor.notes, told)
        if timed and failure is None:
            visits = _timed(visits, visited, inputs, as_is)
    return Passage(visits, failure, flops_counted=any(flops_of(note, told) for note in visitor.notes))


def visits_of(notes: list[Note], told: Architecture) -> tuple[Visit, ...]:
    """With what each called itself counted in."""
    flops = [flops_of(note, told) for note in notes]
    for place in range(len(notes) - 1, -1, -1):  # a visit comes after the one that it was called from
        parent = notes[place].parent
        if parent is not None:
            flops[parent] += flops[place]
    return tuple(Visit(n.path, n.parent, n.inputs, n.outputs, f, None, n.finished) for n, f in zip(notes, flops, strict=True))


def flops_of(note: Note, told: Architecture) -> int:
    layer = next((x for x in told.layers if x.path == note.path), None)
    output = note.outputs[0].shape if note.outputs else None
    if layer is None or output is None or not output:
        return 0
    weights = [p.shape for p in told.parameters if p.layer == note.path]
    units = layer.settings.get("out", output[-1])
    return layer_flops(layer.family, weights, output, units if isinstance(units, int) else output[-1])


def _timed(visits: tuple[Visit, ...], model: Any, inputs: Any, as_is: bool) -> tuple[Visit, ...]:
    passes = []
    for _ in range(TIMED_PASSES):
        visitor = Visitor(model)
        with visitor.following():
            ask(model, inputs, training=as_is)
        if len(visitor.notes) == len(visits):
            passes.append([note.seconds for note in visitor.notes])
    if not passes:  # the model does not call the same layers every time
        return visits
    return tuple(replace(v, seconds=float(s)) for v, s in zip(visits, np.min(passes, axis=0), strict=True))
