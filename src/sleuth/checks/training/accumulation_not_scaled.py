"""The loss of each accumulated part goes backward whole, so that the parts add up to several times the gradient."""

from collections.abc import Iterator
from itertools import combinations

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Accumulation, Call, CallKind, Settings, Step
from sleuth.core.stage import Severity, Stage

# Optimisers whose step is as large as the gradient; others divide by its size.
SIZED = ("SGD", "ASGD", "LBFGS", "Muon")
# The last step of an epoch may have fewer parts.
MOSTLY = 0.8
# Both are the same number unless something was done to it.
SAME = 1e-5
LEAST_STEPS = 2


@check(
    code="T421",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step, Settings),
    explains=(
        "exploding-gradients",
        "update-too-large",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-decreasing",
        "loss-not-finite",
        "gradient-not-finite",
        "learning-rate-too-high",
        "weights-grow",
        "units-dying",
        "predicts-one-class",
    ),
    title="Accumulated losses are not divided by their number",
    why="""A mean loss gives a gradient of the same size for a small batch as for a large one. When several backwards add up
    before a step, each must bring its share only; otherwise the step is that many times larger than the learning rate says,
    and changes with the number of parts.""",
    fix="Divide each part's loss by the number of parts before backward: (loss / parts).backward().",
    decided_by="what each of several backwards of a step was given, against what its loss function returned",
    symptoms=(
        "gradient accumulation gives worse results",
        "training diverges with gradient accumulation",
        "gradient accumulation needs a smaller learning rate",
        "accumulation steps change the result",
    ),
)
def accumulation_not_scaled(seen: Seen) -> Iterator[Evidence | NotExamined]:
    steps = [s for s in seen.all(Step) if s.optimiser == 0]
    counts = [s.counts[CallKind.BACKWARD] for s in steps if s.counts.get(CallKind.BACKWARD)]
    if len(counts) < LEAST_STEPS:
        yield NotExamined("how many backwards each step had was not seen")
        return
    parts = max(set(counts), key=counts.count)
    if parts < 2 or counts.count(parts) < MOSTLY * len(counts):
        return
    if seen.one(Settings).optimiser not in SIZED:
        return  # this optimiser takes the size of the gradient out again
    found = [a for a in seen.all(Accumulation) if a.optimiser == 0]
    if len(found) < LEAST_STEPS:
        yield NotExamined("what the several backwards of a step were given was not seen")
    elif any(a.touched for a in found):
        yield NotExamined("the gradient is changed between the last backward and the step: it may be divided there")
    elif any(p.returned is None for a in found for p in a.parts):
        yield NotExamined("no one loss function was heard behind each backward")
    elif all(_whole(a) for a in found) and not _looks_again(found) and not _told_always(found):
        yield _evidence(seen, found, parts)


def _whole(step: Accumulation) -> bool:
    """Parts of one loss, none of them divided."""
    places = {(p.loss, p.location) for p in step.parts}
    return (
        len(places) == 1
        # Several losses of one forward are tasks, not parts.
        and step.forwards >= len(step.parts)
        and all(p.reduction == "mean" and p.target and _same(p.value, p.returned) for p in step.parts)
    )


def _looks_again(steps: list[Accumulation]) -> bool:
    """The same samples twice are another look at them, such as the second half of a sharpness-aware step. Two parts of a few
    samples may also be alike by chance, but not in every step."""
    shortest = min(len(step.parts) for step in steps)
    return any(all(s.parts[i].target == s.parts[j].target for s in steps) for i, j in combinations(range(shortest), 2))


def _told_always(steps: list[Accumulation]) -> bool:
    """One answer for all samples, and the same in every step, is what a discriminator is told of real, then of made ones."""
    for parts in zip(*(step.parts for step in steps), strict=False):
        answers = {part.target[:2] for part in parts}
        if len(answers) == 1 and len(set(*answers)) == 1:
            return True
    return False


def _same(value: float | None, returned: float | None) -> bool:
    return value is not None and returned is not None and abs(value - returned) <= SAME * abs(returned)


def _evidence(seen: Seen, found: list[Accumulation], parts: int) -> Evidence:
    first, by_hand = found[0].parts[0], found[0].by_hand
    # A sum by hand is divided where it is used.
    kind = CallKind.STEP if by_hand else CallKind.BACKWARD
    place = next((c.location for c in seen.all(Call) if c.kind == kind and c.location), first.location)
    rate = seen.one(Settings).lr
    cure = f"Divide the sum by {parts} before the step." if by_hand else f"Divide before backward: (loss / {parts}).backward()."
    return Evidence(
        location=place,
        summary=f"each step adds up {parts} backwards of a mean {first.loss}, and each is given the loss as it is "
        f"({first.value:.4g}): the gradient is {parts} times that of their mean",
        fix=f"{cure} The steps become {parts} times smaller; a learning rate that was tuned with them ({rate:g}) may then be "
        f"{parts} times larger."
        if rate
        else cure,
        numbers={"parts": parts, "value": first.value, "returned": first.returned},
        first_step=found[0].step,
        strength=float(parts),
    )
