"""One sample's output depends on other samples."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Layer
from sleuth.core.reading.flow import torn
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Dependence, Flow, Operation, TargetShift

# Changes are measured in units of the outputs' own spread. Other rows of the same matrix product may differ by rounding,
# in half precision by a few parts in a thousand.
MIXED = 1e-2


@check(
    code="M223",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.LIKELY,
    reads=(Dependence, Architecture),
    explains=(
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "learns-without-input",
        "validation-not-deterministic",
        "train-eval-disagree",
        "loss-oscillates",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "underfitting",
        "capacity-too-small",
    ),
    title="Samples of a batch influence each other",
    why="""In evaluation mode the output of a sample may depend on that sample alone. Here it moves when another sample is
    exchanged: a reshape, a wrong axis or a layer that takes the batch axis for time mixes them, so that answers change with
    their company.""",
    fix="Look at every view, reshape, transpose and axis in forward: the first axis must stay the batch all the way through.",
    decided_by="whether other samples' outputs move when one sample is exchanged",
    symptoms=(
        "prediction changes with the batch",
        "different results with batch size 1",
        "wrong view or reshape mixes the batch",
        "view instead of permute",
        "forgot batch_first=True",
        "samples of a batch leak into each other",
    ),
)
def samples_mix(seen: Seen, *, mixed: float = MIXED) -> Iterator[Evidence | NotExamined]:
    found = seen.one(Dependence)
    if found.mixing_unknown is not None:
        yield NotExamined(found.mixing_unknown)
        return
    if found.mixing <= mixed:
        return
    shift = seen.maybe(TargetShift)
    if shift is not None and shift.axis == 0 and shift.best is not None:
        yield NotExamined(
            "the targets lie along the first axis of the inputs: it counts positions, and these may depend on each other"
        )
        return
    flow = seen.maybe(Flow)
    cut = None if flow is None else torn(flow, found.samples)
    if found.of_one_size and cut is None:
        yield NotExamined("outputs depend on other samples, and no operation was seen that tears samples apart: it may be meant")
        return
    layers = seen.one(Architecture).layers
    suspect = _time_first(layers)
    if found.equivariant and suspect is None:
        yield NotExamined("outputs depend on the batch as a whole, as batch statistics do; whether that is meant cannot be told")
        return
    yield Evidence(
        where=suspect.path if suspect else None,
        location=cut.location if cut is not None and suspect is None else None,
        summary=f"exchanging one sample moves the outputs of {found.mixed_samples} of the {found.samples - 1} others, "
        f"by up to {found.mixing:.2g} of their spread"
        + (_torn(cut, flow) if cut is not None and flow is not None else _blame(suspect)),
        numbers={"mixing": found.mixing, "mixed_samples": found.mixed_samples, "own": found.own_input, "samples": found.samples},
        fix=_batch_first(suspect, layers) if suspect else None,
        confidence=Confidence.CERTAIN if not found.equivariant else Confidence.LIKELY,
        strength=found.mixing / mixed,
    )


def _torn(cut: Operation, flow: Flow) -> str:
    before = flow.operations[cut.sources[0]].shape
    return f"; a {cut.name} from {before} to {cut.shape} cuts across samples, where a transpose would have moved them"


def _blame(suspect: Layer | None) -> str:
    if suspect is None:
        return ""
    return f"; {suspect.path} ({suspect.kind}) takes the first axis for time, because batch_first is not set"


def _batch_first(suspect: Layer, layers: tuple[Layer, ...]) -> str:
    """At the layer that the user wrote: attention may be a part of a transformer's."""
    outer = [x for x in layers if "Transformer" in x.kind and suspect.path.startswith(f"{x.path}.")]
    inner = next((x for x in reversed(outer) if x.kind.endswith("Layer")), suspect)
    return f"Give {inner.path} batch_first=True: {inner.kind}(..., batch_first=True)."


def _time_first(layers: tuple[Layer, ...]) -> Layer | None:
    families = ("recurrent", "attention")
    return next((x for x in layers if x.family in families and x.settings.get("batch_first") is False), None)
