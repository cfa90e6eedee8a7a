"""What the arrays of a batch are called, and which side of the loss they stand on."""

from typing import TYPE_CHECKING

import jax

from sleuth.adapters.jax.forms import path_of
from sleuth.adapters.jax.running import is_data
from sleuth.adapters.jax.trace import Trace
from sleuth.core.subject import Parts, Usage

if TYPE_CHECKING:
    from sleuth.adapters.jax.bench import JaxBench


def batch_slots(bench: "JaxBench", batch: Parts, trace: Trace) -> list[tuple[str, int]]:
    """(path, slot) of every array that the traced function was given of the batch."""
    given = bench.program.given(batch)
    names = [path_of(keys) for keys, leaf in jax.tree_util.tree_flatten_with_path(given)[0] if is_data(leaf)]
    return list(zip(names, trace.batch, strict=True))


def batch_names(bench: "JaxBench", batch: Parts, trace: Trace) -> list[tuple[str, int]]:
    """What comes from outside: the model's inputs, or the whole batch of a `step` of the user's own."""
    slots = batch_slots(bench, batch, trace)
    if bench.program.step is not None:
        return slots
    return [(name.partition(".")[2], slot) for name, slot in slots if name.partition(".")[0] == "0"]


def step_usage(bench: "JaxBench", batch: Parts) -> Usage | None:
    """What the model's answers are made of are inputs; what the loss sees beside the answers are targets."""
    trace = bench.trace(batch)
    outputs, value = frozenset(trace.outputs()), trace.value
    if not outputs or not isinstance(value, int):
        return None
    names = {slot: name for name, slot in batch_slots(bench, batch, trace)}
    inputs, targets = trace.reaching(set(outputs)), trace.reaching({value}, outputs)
    return Usage(*(tuple(name for slot, name in names.items() if slot in found) for found in (inputs, targets)))
