"""Follows one step op by op: which parameters the loss reaches, and where the graph is cut when it does not."""

from collections.abc import Iterator
from dataclasses import replace

from sleuth.core.contract.adapter import Traces
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import Connection, Cut
from sleuth.probes.lab.probe import Lab, probe

# An expert or a dropped layer that one batch passes by may be used by the next.
BATCHES = 8


@probe(
    title="Following the graph from the loss to the parameters",
    stage=Stage.MODEL,
    rank=2,
    emits=(Connection,),
    needs=("forward",),
)
def connecting(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Traces):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot follow single operations")
    if not lab.bench.paths():
        raise Unsupported("no parameter is trainable")
    start = lab.bench.snapshot()
    try:
        lab.bench.set_training(True)
        found = lab.adapter.connection(lab.bench, lab.batch)
        for batch in lab.train.batches[1:BATCHES]:
            if not found.without_gradient or lab.time_is_up():
                break
            found = _narrowed(found, lab.adapter.connection(lab.bench, batch))
        yield found
    finally:
        lab.bench.restore(start)


def _narrowed(one: Connection, other: Connection) -> Connection:
    """Only what no batch reached stays without a gradient."""
    missing = tuple(p for p in one.without_gradient if p in other.without_gradient)
    return replace(
        one,
        without_gradient=missing,
        cuts=tuple(_only(cut, missing) for cut in one.cuts),
        unused_layers=tuple(u for u in one.unused_layers if u in other.unused_layers),
        error=one.error if other.error else None,
        custom=None if one.custom is None else tuple(sorted({*one.custom, *(other.custom or ())})),
    )


def _only(cut: Cut, missing: tuple[str, ...]) -> Cut:
    return replace(cut, parameters=tuple(p for p in cut.parameters if p in missing))
