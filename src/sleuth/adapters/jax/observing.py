"""One forward and loss, looked at: activations, units, what the loss was given, and where NaN is born."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.common.activity import frame_of, units_of
from sleuth.adapters.jax.arrays import to_numpy
from sleuth.adapters.jax.failure import explain
from sleuth.adapters.jax.loss_calls import failed_call, loss_calls
from sleuth.adapters.jax.naming import batch_names
from sleuth.adapters.jax.operations import Made, Operations
from sleuth.adapters.jax.origin import find_origin
from sleuth.adapters.jax.program import Progress
from sleuth.adapters.jax.trace import Trace
from sleuth.core.observation import Absent, Observation, Units
from sleuth.core.subject import Parts

if TYPE_CHECKING:
    from sleuth.adapters.jax.bench import JaxBench

NOTED = ("linear", "conv", "recurrent", "attention", "embedding", "batchnorm", "norm", "dropout", "activation", "softmax", "pool")


def observe(bench: "JaxBench", batch: Parts, step: int) -> Iterator[Observation]:
    progress = Progress()
    try:
        trace = bench.trace(batch, progress)
    except Exception as error:
        if progress.phase == "loss":
            yield failed_call(bench, batch, error)
        yield explain(error, progress.phase, progress.marks.failed_in)
        return
    found = Operations(trace, inputs=batch_names(bench, batch, trace))
    noted = list(_noted(trace, found))
    outputs = trace.outputs()
    value = trace.value
    slots = list(dict.fromkeys([*(m.slot for _, m in noted), *outputs, *([value] if isinstance(value, int) else [])]))
    arrays = bench.arrays(batch)
    values = dict(zip(slots, trace.values(bench, arrays, slots), strict=True))
    yield from _activity(noted, values, outputs, step)
    if bench.program.loss is not None or bench.program.step is not None:
        yield from loss_calls(bench, batch, trace, found, values)
    if any(not _is_finite(v) for v in values.values()):
        origin = find_origin(bench, batch, step)
        if origin is not None:
            yield origin


def _noted(trace: Trace, found: Operations) -> Iterator[tuple[str, Made]]:
    """Layers and activations inside the model, under names that tell them apart."""
    outputs = trace.outputs()
    last = max((at for slot in outputs if (at := found.maker(slot)) is not None), default=len(found.made) - 1)
    times: dict[str, int] = {}
    for made in found.made[: last + 1]:
        operation = made.operation
        if operation.family not in NOTED or not operation.shape:
            continue
        path = operation.layer
        if operation.family in ("activation", "softmax") and operation.name in (made.activation, "softmax", "log_softmax"):
            path = ".".join(filter(None, (operation.layer, operation.name)))
            times[path] = times.get(path, 0) + 1
            path = path if times[path] == 1 else f"{path}.{times[path]}"
        yield path or operation.name, made


def _activity(noted: list[tuple[str, Made]], values: dict[int, Any], outputs: list[int], step: int) -> Iterator[Observation]:
    arrays = [(path, to_numpy(values[made.slot])) for path, made in noted]
    if not arrays:
        arrays = [("output", to_numpy(values[slot])) for slot in outputs[:1]]
    yield from frame_of(step, arrays)
    units = [(path, m, to_numpy(values[m.slot])) for path, m in noted if m.activation and len(m.operation.shape) >= 2]
    yield from (units_of(step, path, made.activation, array) for path, made, array in units if array.size)
    if not units:
        yield Absent(Units, "no operation of the model is known as an activation (relu, sigmoid, tanh, …)")


def _is_finite(array: Any) -> bool:
    values = to_numpy(array)
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())
