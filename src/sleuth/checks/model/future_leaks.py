"""A model that predicts the next element sees it already."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Causality, Flow

# Operations that may bring positions together, or of which nobody knows whether they do.
MEETING = ("attention", "recurrent", "conv", "pool", "average", "softmax", "product", "other")


@check(
    code="M224",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Causality,),
    explains=("validation-too-good", "initial-loss-off"),
    title="The model sees the future it must predict",
    why="""The target at a position is the next element of the input. When the output at that position changes with
    later elements, the model can copy the answer: the loss falls to almost nothing, and generating text yields
    nonsense.""",
    fix="""Pass a causal mask to attention (is_causal=True, or a mask of -inf above the diagonal), use left padding
    in convolutions, and no bidirectional recurrent layer.""",
    decided_by="whether earlier outputs move when only later inputs change",
    symptoms=(
        "language model loss too low",
        "loss near zero but generates garbage",
        "forgot the causal mask",
        "attention sees the next token",
        "perplexity is 1",
    ),
)
def future_leaks(seen: Seen) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Causality)
    if trial.ahead < 1:
        yield NotExamined("the targets are not the inputs shifted by one, so nothing says that the model must be causal")
    elif trial.leaking:
        yield Evidence(
            location=_only_place(seen.maybe(Flow)),
            summary=f"outputs at {trial.leaking} of {trial.positions} positions change when only later inputs change "
            f"(from {trial.reach} ahead on, by {trial.change:.2g} of the outputs' spread)",
            numbers={"positions": trial.positions, "leaking": trial.leaking, "change": trial.change},
            strength=trial.change,
        )


def _only_place(flow: Flow | None) -> Location | None:
    """The one line at which positions can meet, if there is no other."""
    places = {o.location for o in flow.operations if o.family in MEETING} if flow is not None else set()
    return places.pop() if len(places) == 1 else None
