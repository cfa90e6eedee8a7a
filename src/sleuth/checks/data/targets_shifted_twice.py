"""Each position of a sequence is asked for an element further on, or further back, than the next one."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import LossCall
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import TargetShift

# Where documents end within a sequence, a few positions differ.
SAME = 0.95
# So many positions that equal the next element as well leave nothing to say.
NEXT = 0.9
# With few kinds of elements, equal ones meet by chance.
CHANCE = 0.5
LEAST_POSITIONS = 64


@check(
    code="D123",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    reads=(TargetShift,),
    explains=("underfitting", "loss-not-decreasing", "validation-too-good", "capacity-too-small", "cannot-overfit-one-batch"),
    title="Targets are shifted against the inputs by more than one",
    why="""Targets that were shifted by the data set are shifted once more by the model or the loss (or to the wrong side): the
    model learns to skip a token. The loss falls, but not as far as it could, and generated text has every second token
    missing.""",
    fix="""Shift once only: hand over labels=input_ids where the model shifts by itself, or drop the cut in the loss where the
    data set gives the next tokens.""",
    decided_by="how many positions ahead of the inputs the targets are found",
    symptoms=(
        "labels shifted twice",
        "generated text skips every second token",
        "language model generates garbage although the loss falls",
        "targets off by one",
    ),
)
def targets_shifted_twice(seen: Seen) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(TargetShift)
    if not trial.traced:
        yield NotExamined("what the loss compares with what could not be followed")
        return
    if not trial.integers:
        yield NotExamined("the inputs are numbers, not ids: how far ahead is to be predicted is free")
        return
    if trial.counted.get(1, 0) < LEAST_POSITIONS or trial.chance > CHANCE:
        yield NotExamined("too few positions or kinds of ids to tell a shift")
        return
    shift = _shift(trial)
    if shift is not None:
        yield _evidence(seen, trial, shift)


def _shift(trial: TargetShift) -> int | None:
    shares = trial.shares
    if max(shares.get(0, 0.0), shares.get(1, 0.0)) >= NEXT:
        return None
    # An element to be given back later is a task of its own, unless the ids themselves were handed over as targets.
    backwards = -1 if trial.given.get(0, 0.0) >= SAME else 2
    found = [k for k, share in shares.items() if share >= SAME and (k >= 2 or k == backwards)]
    return min(found, key=abs, default=None)


def _evidence(seen: Seen, trial: TargetShift, shift: int) -> Evidence:
    calls = seen.all(LossCall)
    already = next((k for k, share in trial.given.items() if share >= SAME), None)
    if shift < 0:
        fix = "Cut the other sides: logits[:, :-1] against labels[:, 1:], not logits[:, 1:] against labels[:, :-1]."
    elif already:
        fix = f"Shift once only: the targets are handed over {already} ahead already. Hand over the ids as they are, or drop the "
        fix += "cut."
    else:
        fix = None
    return Evidence(
        where="target",
        location=calls[0].location if calls else None,
        summary=f"{trial.shares[shift]:.0%} of {trial.counted[shift]:,} targets are the input {abs(shift)} "
        f"{'ahead' if shift > 0 else 'back'} (the next one: {trial.shares.get(1, 0.0):.0%})"
        + (f"; they are handed over {already} ahead, and shifted once more" if already and shift > 0 else ""),
        fix=fix,
        numbers={"shift": shift, "share": trial.shares[shift], "next": trial.shares.get(1, 0.0)},
        confidence=Confidence.CERTAIN if already is not None and already != shift else None,
        strength=trial.shares[shift] / SAME,
    )
