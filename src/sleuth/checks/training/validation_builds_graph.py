"""The model is validated with autograd on."""

from collections import Counter
from collections.abc import Iterator

from sleuth.checks.evidence.loop import FORWARDS, UNHEARD, heard_steps
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Call, CallKind, Phase, Step
from sleuth.core.stage import Severity, Stage
from sleuth.core.words import counted

# Calls in a row that no backward used; one or two may be a look at something.
LEAST_CALLS = 3
# Of the steps must call the model as often for each backward: else nobody knows which of the calls are extra.
USUAL = 0.7
LEAST_STEPS = 5


@check(
    code="T415",
    stage=Stage.TRAINING,
    severity=Severity.HINT,
    reads=(Step,),
    explains=("memory-grows", "out-of-memory"),
    title="The validation builds a graph that nobody uses",
    why="""With autograd on, every layer keeps what a backward would need. In a validation there is none: it takes longer than it
    must, and several times the memory.""",
    fix="""Put the validation under `with torch.no_grad():` (or torch.inference_mode()).""",
    decided_by="calls of the model with autograd on that no backward follows",
    symptoms=(
        "out of memory in validation",
        "validation is slow",
        "validation needs more memory than training",
        "forgot torch.no_grad",
    ),
)
def validation_builds_graph(
    seen: Seen, *, least_calls: int = LEAST_CALLS, usual: float = USUAL
) -> Iterator[Evidence | NotExamined]:
    by_optimiser, phases = heard_steps(seen), seen.all(Phase)
    if not by_optimiser:
        yield NotExamined(UNHEARD)
        return
    if not phases:
        yield NotExamined("no validation was seen: the model was not called several times in a row without training")
        return
    rates = {number: rate for number, steps in by_optimiser.items() if (rate := _rate(steps, usual)) is not None}
    if not rates:
        yield NotExamined("the model is called a different number of times for each step")
        return
    extra = [p for p in phases if p.step > 0 and _is_extra(p, rates)]
    # A validation in one go calls the model once, and comes again: its mode tells it from a look at something.
    single = [p for p in extra if p.calls < least_calls and p.kind == CallKind.FORWARD_IN_EVAL]
    wasted = [p for p in extra if p.calls >= least_calls or (p in single and len(single) >= least_calls)]
    if not wasted:
        return
    calls = sum(p.calls for p in wasted)
    yield Evidence(
        summary=f"{counted(len(wasted), 'time')} the model was called with autograd on and no backward followed: "
        f"{calls} calls built a graph for nothing",
        location=_place(seen, wasted[0]),
        numbers={"validations": len(wasted), "calls": calls},
        last_step=wasted[-1].step,
        strength=float(calls),
    )


def _rate(steps: list[Step], usual: float) -> float | None:
    """Calls of the model for each backward, where that is mostly the same."""
    # A step that was heard because something else came before it does not stand for the others.
    usual_steps = [s for s in steps if not s.unusual]
    counts = [(sum(s.counts.get(kind, 0) for kind in FORWARDS), s.counts.get(CallKind.BACKWARD, 0)) for s in usual_steps]
    rates = Counter(forwards / backwards for forwards, backwards in counts if backwards)
    if rates.total() < LEAST_STEPS:
        return None
    rate, times = rates.most_common(1)[0]
    return rate if times >= usual * rates.total() else None


def _is_extra(phase: Phase, rates: dict[int, float]) -> bool:
    """Does the phase come on top of the calls that the backwards of this step are fed with?"""
    rate = rates.get(phase.optimiser, max(rates.values()) if phase.last else None)
    if phase.kind not in FORWARDS or rate is None:
        return False
    if phase.last:
        return phase.calls > rate
    return phase.forwards - rate * phase.backwards >= phase.calls - 0.5


def _place(seen: Seen, phase: Phase) -> Location | None:
    """The line that was new when the validation came; the training's own lines are known by then. Of a function that only
    validates its beginning: there torch.no_grad() belongs."""
    calls = [c for c in seen.all(Call) if c.kind == phase.kind and c.location is not None]
    later = [c for c in calls if c.step >= phase.step]
    call = next(iter((*later, *reversed(calls))), None)
    trains = [c.function for c in seen.all(Call) if c.kind == CallKind.BACKWARD]
    if call is None or call.function is None or call.function in trains:
        return None if call is None else call.location
    return call.function
