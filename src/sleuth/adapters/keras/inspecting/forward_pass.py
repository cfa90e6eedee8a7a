"""One forward pass of a guest, visit by visit: shapes, operations, time, and what it failed of."""

from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.common.inspecting.layer_names import require_passage
from sleuth.adapters.keras.failure import explain
from sleuth.adapters.keras.inspecting.layer_calls import Visitor
from sleuth.adapters.keras.inspecting.model_copy import call, guest
from sleuth.core.contract.inspection import Passage, Visit

# The least of so many passes is one that nothing disturbed.
TIMED_PASSES = 5


def passage(model: Any, inputs: Any, *, timed: bool = False, as_is: bool = False) -> Passage:
    """Keras has no mode that a model would be left in: `as_is` changes nothing."""
    with guest(model) as visited:
        visitor = Visitor(visited)
        try:
            with visitor.following():
                call(visited, inputs)
        except Exception as error:
            open_layers = [v.path for v in visitor.noted if not v.finished and v.path]
            failure = explain(error, "forward", visited, open_layers[-1] if open_layers else None)
            return Passage(visitor.visits(), failure, flops_counted=False)
        visits = visitor.visits()
        return Passage(_timed(visits, visited, inputs) if timed else visits)


def _timed(visits: tuple[Visit, ...], model: Any, inputs: Any) -> tuple[Visit, ...]:
    passes = []
    for _ in range(TIMED_PASSES):
        visitor = Visitor(model)
        with visitor.following():
            call(model, inputs)
        if len(visitor.noted) == len(visits):
            passes.append([note.seconds for note in visitor.noted])
    if not passes:  # the model does not call the same parts every time
        return visits
    return tuple(replace(v, seconds=float(s)) for v, s in zip(visits, np.min(passes, axis=0), strict=True))


def say_why_it_fails(model: Any, inputs: Any) -> None:
    require_passage(passage(model, inputs))
