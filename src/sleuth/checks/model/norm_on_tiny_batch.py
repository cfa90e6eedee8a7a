"""Batch-norm computes its statistics over one or two samples."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Batch, CallKind, Split
from sleuth.core.stage import Confidence, Severity, Stage

# From three samples on, a spread can at least be told from noise; below it the "statistics" are the samples themselves.
TINY = 2


@check(
    code="M225",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Architecture, Batch),
    explains=(
        "forward-fails",
        "train-eval-disagree",
        "loss-not-decreasing",
        "loss-oscillates",
        "loss-spikes",
        "batch-size-off",
        "capacity-too-small",
    ),
    title="Batch-norm sees almost no samples",
    why="""Batch-norm replaces the scale of each feature by that of the batch. Over one or two samples this is no
    estimate but the samples themselves: what distinguishes them is divided away, and the running statistics used in
    evaluation become noise.""",
    fix="""Use larger batches, pass drop_last=True to the loader if only the last batch is tiny, or replace batch-
    norm by layer-norm or group-norm.""",
    decided_by="the batch sizes against the layers that normalise over the batch",
    symptoms=(
        "Expected more than 1 value per channel when training",
        "batch norm with batch size 1",
        "validation worse than training with batch norm",
        "crashes on the last batch",
        "results differ with small batches",
    ),
)
def norm_on_tiny_batch(seen: Seen, *, tiny: int = TINY) -> Iterator[Evidence | NotExamined]:
    norms = [layer for layer in seen.one(Architecture).layers if layer.family == "batchnorm"]
    sizes = [b.size for b in seen.batches(Split.TRAIN)]
    if not norms or not sizes or max(sizes) == 0:
        return
    small = [s for s in sizes if s <= tiny]
    if not small:
        return
    only_last = len(small) == 1 and sizes[-1] <= tiny and len(sizes) > 1
    if only_last and sizes[-1] > 1:
        return  # one step in an epoch over two samples is noise, not harm
    which = (
        f"the last batch has {sizes[-1]} sample"
        if only_last
        else f"{len(small)} of {len(sizes)} batches have {max(small)} or fewer"
    )
    yield Evidence(
        where=norms[0].path,
        location=place_of(seen, CallKind.BATCH_SIZE) or place_of(seen, CallKind.MADE_LOADER),
        summary=f"{which}, and {norms[0].path} ({norms[0].kind}) normalises over the batch",
        fix="Leave out the last batch where it has one sample only (in torch: DataLoader(…, drop_last=True))."
        if only_last
        else None,
        numbers={"smallest_batch": min(sizes), "tiny_batches": len(small), "batches": len(sizes)},
        strength=len(small) / len(sizes),
    )
