"""The loss at the start is far above what guessing gives."""

from collections.abc import Iterator

from sleuth.checks.evidence.progress import progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Step
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import InitialLoss

# Networks with default initialisation start up to a quarter above guessing (a ResNet on ten classes at 2.5 to 2.9 instead
# of 2.3). Twice as much means that the untrained model is sure of wrong answers.
TIMES = 2.0
# Steps that show what becomes of such a start; a short trial of our own does not.
LONG = 200
# Chance of the batches that were drawn: three standard deviations.
SPREADS = 3.0


@check(
    code="M211",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    confidence=Confidence.LIKELY,
    reads=(InitialLoss,),
    explains=("loss-spikes",),
    title="The loss starts far above what guessing gives",
    why="""An untrained model knows nothing, so its loss should be that of guessing: ln K for K classes, the size of the target
    for squared error. A loss far above says that it begins by being sure of wrong answers, and the first steps only undo that.
    A loss below guessing is what a pretrained model shows, and is not held against it.""",
    fix="""Scale down the weights of the last layer and set its bias to the mean of the target (or to log-frequencies of the
    classes); check that inputs and targets are normalised.""",
    decided_by="the first loss against what guessing gives",
    symptoms=(
        "loss is huge at the start",
        "initial loss is not ln of the number of classes",
        "loss starts at 20",
        "first loss much higher than expected",
    ),
)
def initial_loss_off(seen: Seen, *, times: float = TIMES, spreads: float = SPREADS) -> Iterator[Evidence | NotExamined]:
    start = seen.one(InitialLoss)
    if start.expected <= 0:
        yield NotExamined(f"guessing gives a loss of {start.expected:.3g} ({start.how}): there is nothing to compare with")
        return
    ratio = start.measured / start.expected
    steps = seen.all(Step)
    progress = progress_of(steps) if len(steps) >= LONG else None
    if start.measured > max(times * start.expected, start.expected + start.natural) + spreads * start.spread:
        yield Evidence(
            summary=f"the loss starts at {start.measured:.3g}, where guessing gives {start.expected:.3g} ({start.how})",
            numbers={"measured": start.measured, "expected": start.expected, "ratio": ratio},
            # Who has come below guessing since then has undone that start.
            severity=Severity.HINT if progress is not None and progress.works and progress.late < start.expected else None,
            strength=ratio / times,
        )
