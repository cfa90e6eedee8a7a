"""Follows one forward pass: which operation feeds which."""

from collections.abc import Iterator

from sleuth.core.adapter import Traces
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Flow
from sleuth.probes.exchanging import first_samples
from sleuth.probes.probe import Lab, probe

# A number that is no width of a layer, so that the axis of samples is not taken for another one.
SAMPLES = 7


@probe(title="Following one forward pass", stage=Stage.MODEL, rank=3, emits=(Flow,), needs=("forward",))
def flowing(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Traces):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot follow single operations")
    start = lab.bench.snapshot()
    try:
        lab.bench.set_training(True)
        yield _followed(lab, lab.adapter)
    finally:
        lab.bench.restore(start)


def _followed(lab: Lab, adapter: Traces) -> Flow:
    """On a few samples; on all of them where the model wants all, such as the nodes of one graph."""
    try:
        return adapter.flow(lab.bench, _few(lab))
    except Unsupported:
        raise
    except Exception:
        return adapter.flow(lab.bench, lab.batch)


def _few(lab: Lab) -> Parts:
    return first_samples(lab, lab.batch, SAMPLES)
