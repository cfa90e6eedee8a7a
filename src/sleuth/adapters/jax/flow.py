"""Which operation feeds which in one forward pass."""

from dataclasses import replace

from sleuth.adapters.jax.bench import JaxBench
from sleuth.adapters.jax.naming import batch_names
from sleuth.adapters.jax.operations import Operations
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts
from sleuth.core.trial import Flow

MOST_OPERATIONS = 20_000


def flow(bench: JaxBench, batch: Parts) -> Flow:
    trace = bench.trace(batch)
    outputs = trace.outputs()
    if not outputs:
        raise Unsupported("the output of the model is not known: give (apply, params) and loss=")
    found = Operations(trace, inputs=batch_names(bench, batch, trace))
    ended = sorted({at for slot in outputs if (at := found.maker(slot)) is not None})
    if len(found.made) > MOST_OPERATIONS:
        raise Unsupported(f"one forward pass takes more than {MOST_OPERATIONS:,} operations")
    # What the loss does afterwards is no part of the pass.
    last = max(ended, default=-1) + 1
    operations = [replace(m.operation, leaves=i in ended) for i, m in enumerate(found.made[:last])]
    return Flow(tuple(operations), tuple(ended))
