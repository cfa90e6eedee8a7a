"""Follows one forward pass: which operation feeds which, and along which axes the samples lie."""

from collections.abc import Iterator
from dataclasses import replace

from sleuth.core.contract.adapter import Traces
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Flow, Operation
from sleuth.probes.lab.changed_inputs import first_samples
from sleuth.probes.lab.probe import Lab, probe

# Numbers that are no width of a layer, so that the axis of samples is not taken for another one.
SAMPLES = 7
FEWER = 5


@probe(title="Following one forward pass", stage=Stage.MODEL, rank=3, emits=(Flow,), needs=("forward",))
def flowing(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Traces):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot follow single operations")
    start = lab.bench.snapshot()
    try:
        lab.bench.set_training(True)
        found = _followed(lab, lab.adapter)
        lab.bench.restore(start)
        lab.bench.set_training(True)
        yield _with_samples(lab, lab.adapter, found)
    finally:
        lab.bench.restore(start)


def _followed(lab: Lab, adapter: Traces) -> Flow:
    """On a few samples; on all of them where the model wants all, such as the nodes of one graph."""
    try:
        return adapter.flow(lab.bench, _few(lab, SAMPLES))
    except Exception:
        return adapter.flow(lab.bench, lab.batch)


def _with_samples(lab: Lab, adapter: Traces, flow: Flow) -> Flow:
    """With fewer samples the same operations make shorter results: where, the samples lie."""
    try:
        fewer = adapter.flow(lab.bench, _few(lab, FEWER)).operations
    except Exception:  # the model wants all of them
        return flow
    pairs = list(zip(flow.operations, fewer, strict=False))
    if len(flow.operations) != len(fewer) or any(a.name != b.name or len(a.shape) != len(b.shape) for a, b in pairs):
        return flow
    return replace(flow, operations=tuple(replace(a, samples=_shorter(a, b)) for a, b in pairs))


def _shorter(one: Operation, other: Operation) -> tuple[int, ...]:
    sizes = enumerate(zip(one.shape, other.shape, strict=True))
    return tuple(axis for axis, (more, fewer) in sizes if more > fewer)


def _few(lab: Lab, samples: int) -> Parts:
    return first_samples(lab, lab.batch, samples)
