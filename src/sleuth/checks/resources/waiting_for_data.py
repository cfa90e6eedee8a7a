"""The loader takes most of a step."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Architecture, Step
from sleuth.core.stage import Confidence, Severity, Stage

# Steps that were listened to; the first ones also start things.
LEAST_STEPS = 16
WARM_UP_STEPS = 2
# Of the time of a step: the model stands idle longer than it works.
MOST = 0.5
# Nearly every step has to wait so: a queue that runs empty now and then is as it should be.
USUALLY = 0.25
# Putting a batch together from memory takes less than this; what takes longer reads, decodes or computes.
LEAST_WAIT_SECONDS = 0.01
# All in all: less is not worth a change of code.
LEAST_WAITED_SECONDS = 0.5


@check(
    code="R601",
    stage=Stage.RESOURCES,
    severity=Severity.WARNING,
    confidence=Confidence.LIKELY,
    reads=(Step,),
    title="The loader takes most of a step",
    why="""Between two steps the loop asks its loader for a batch, and while that reads files, decodes or transforms, the model
    stands still. A run in which most of each step is waiting becomes that much faster when batches are ready in time.""",
    fix="""Let worker processes prepare batches ahead, DataLoader(..., num_workers=4, persistent_workers=True), and do once
    what is the same for every epoch: decode, parse and resize before the training, or keep the result in memory.""",
    decided_by="the seconds that the loop waits for its loader, against those of the whole step",
    symptoms=(
        "training is slow",
        "GPU utilisation is low",
        "data loading is the bottleneck",
        "dataloader is slow",
        "each epoch takes forever",
    ),
)
def waiting_for_data(
    seen: Seen, *, most: float = MOST, least_wait_seconds: float = LEAST_WAIT_SECONDS
) -> Iterator[Evidence | NotExamined]:
    steps = [s for s in seen.all(Step) if "data" in s.seconds and not s.unusual and s.step >= WARM_UP_STEPS]
    if len(steps) < LEAST_STEPS:
        yield NotExamined(_reason(seen, len(steps)))
        return
    waits = np.array([s.seconds["data"] for s in steps])
    shares = waits / np.maximum([s.seconds["step"] for s in steps], 1e-9)
    usual, share = float(np.median(waits)), float(np.median(shares))
    total = usual * seen.count(Step)
    if share < most or float(np.quantile(shares, USUALLY)) < most or usual < least_wait_seconds:
        return
    if total < LEAST_WAITED_SECONDS:
        yield NotExamined(f"it waited {total:.1f} s in all, which is too short to judge")
        return
    yield Evidence(
        summary=f"of the {_took(steps) * 1e3:.0f} ms that a step takes, {usual * 1e3:.0f} ms ({share:.0%}) are spent waiting for "
        f"the loader: {total:.0f} s in {seen.count(Step):,} steps",
        numbers={"share": share, "wait_seconds": usual, "step_seconds": _took(steps), "waited_seconds": total},
        series=(Series("waiting, share of the step", tuple(float(s.step) for s in steps), tuple(shares.tolist())),),
        first_step=steps[0].step,
        last_step=steps[-1].step,
        strength=share / most,
    )


def _took(steps: list[Step]) -> float:
    return float(np.median([s.seconds["step"] for s in steps]))


def _reason(seen: Seen, steps: int) -> str:
    architecture = seen.maybe(Architecture)
    devices = {p.device for p in architecture.parameters} if architecture is not None else set()
    elsewhere = sorted(d for d in devices if not d.startswith("cpu"))
    if elsewhere:
        return f"{elsewhere[0]} works on while the loop waits, so waiting alone tells nothing; sleuth.profile measures it"
    if steps:
        return f"only {steps} steps were seen that took a batch from a loader; it takes {LEAST_STEPS}"
    if any("first-data" in s.seconds for s in seen.all(Step)):
        return "each pass over the data has one batch, and the first one of a pass also waits for the loader to start"
    return "no step was seen that took its batch from a loader"
