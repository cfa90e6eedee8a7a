"""One layer takes most of the time, because it does one sample after the other."""

from collections.abc import Iterator
from dataclasses import dataclass

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Architecture
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import LayerLoad, Workload

# Of a forward pass.
MOST = 0.5
# Its share of the multiplications is so many times below that of the time. A layer that computes most may take most.
OUT_OF_PROPORTION = 5.0
# Calls into the framework that each further sample costs; a layer that takes the batch as a whole calls as many for all.
A_SAMPLE = 0.9
# Of its calls: the rest may be the same for any batch.
MOSTLY = 0.5
# Below this the way into a layer takes longer than the layer.
LEAST_SECONDS = 1e-3


@check(
    code="R605",
    stage=Stage.RESOURCES,
    severity=Severity.HINT,
    confidence=Confidence.LIKELY,
    reads=(Workload, Architecture),
    title="One layer takes most of the time",
    why="""Each call into the framework costs some microseconds however little it computes. A layer that goes through the samples
    of a batch in a Python loop pays that for every sample, while the others pay it once.""",
    fix="""Compute all samples at once: x / x.norm(dim=1, keepdim=True) instead of a loop over the rows, torch.vmap where the
    rows need a function of their own.""",
    decided_by="each layer's share of the time and of the FLOPs, and whether its calls grow with the number of samples",
    symptoms=(
        "training is slow",
        "one layer is a bottleneck",
        "forward pass takes too long",
        "for loop in forward",
        "GPU is hardly used",
    ),
)
def slow_layer(
    seen: Seen, *, most: float = MOST, out_of_proportion: float = OUT_OF_PROPORTION
) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Workload)
    whole = _together(trial.layers)
    if not whole.flops:
        yield NotExamined("the model's work cannot be counted in FLOPs")
        return
    for part in _parts(trial.layers):
        share, work = part.seconds / (whole.seconds or 1.0), part.flops / whole.flops
        further = (part.operations - part.fewer_operations) / (trial.samples - trial.fewer_samples)
        loops = further >= A_SAMPLE and further * trial.samples >= MOSTLY * part.operations
        if share >= most and share >= out_of_proportion * work and part.seconds >= LEAST_SECONDS and loops:
            yield Evidence(
                where=part.path or None,
                location=_location(seen, part.path),
                summary=f"{part.name} takes {share:.0%} of a forward pass ({part.seconds * 1e3:.1f} ms) with {work:.0%} of its "
                f"FLOPs: it calls {part.operations} operations for {trial.samples} samples, {further:.0f} for each further one, "
                "so it goes through them in a loop",
                numbers={"share": share, "flops_share": work, "operations": part.operations, "seconds": part.seconds},
                strength=share / most,
            )
            return


@dataclass(frozen=True)
class Part:
    path: str
    name: str
    seconds: float
    flops: int
    operations: int
    fewer_operations: int


def _parts(layers: tuple[LayerLoad, ...]) -> Iterator[Part]:
    """Each layer for itself, then with all inside it: the innermost that is to blame is named."""
    for layer in layers:
        yield _together((layer,), layer)
    for layer in sorted(layers, key=lambda x: -x.path.count(".")):
        inside = tuple(x for x in layers if x.path == layer.path or x.path.startswith(f"{layer.path}."))
        if layer.path and len(inside) > 1:
            yield _together(inside, layer)


def _together(layers: tuple[LayerLoad, ...], named: LayerLoad | None = None) -> Part:
    path = named.path if named is not None else ""
    name = f"{path} ({named.kind})" if named is not None and path else "the model's own forward, outside of its layers,"
    return Part(
        path,
        name,
        sum(x.seconds for x in layers),
        sum(x.flops for x in layers),
        sum(x.operations for x in layers),
        sum(x.fewer_operations for x in layers),
    )


def _location(seen: Seen, path: str) -> Location | None:
    return next((layer.location for layer in seen.one(Architecture).layers if layer.path == path), None)
