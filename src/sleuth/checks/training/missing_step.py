"""Gradients are computed, and no step follows them."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import UNHEARD, began, came_to_its_end, heard_steps, place_of, steps_before_backward
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import CallKind, Pending, Step
from sleuth.core.stage import Confidence, Severity, Stage

# Backwards of a training that is over and never stepped. Fewer may be a first try of the loop.
LEAST_BACKWARDS = 10
# The same while it still runs: nobody adds up so many batches before the first step.
MANY_BACKWARDS = 1024
# The same where the gradients are cleared without having been used: then they are not being added up.
MANY_WASTED = 128
LEAST_TIMES = 3
SHARE = 0.5


@check(
    code="T412",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Step, Pending),),
    explains=(
        "weights-do-not-change",
        "zero-gradients",
        "vanishing-gradients",
        "update-too-small",
        "loss-not-decreasing",
        "underfitting",
        "predicts-one-class",
        "learning-rate-too-low",
        "stopped-too-early",
        "frozen-parameters",
    ),
    title="Gradients are computed, but no step uses them",
    why="""A backward only computes gradients; the optimiser's step changes the weights. Where the step is missing, or comes
    before the backward whose gradient the next zero_grad throws away, the model stays as it was made.""",
    fix="""Call optimizer.step() after loss.backward(), in every iteration: zero_grad, forward, backward, step.""",
    decided_by="the order of backward and step",
    symptoms=(
        "loss does not decrease",
        "forgot optimizer.step",
        "weights do not change",
        "loss is constant",
        "model does not learn",
        "accuracy stays at chance",
    ),
)
def missing_step(
    seen: Seen, *, least_backwards: int = LEAST_BACKWARDS, least_times: int = LEAST_TIMES, share: float = SHARE
) -> Iterator[Evidence | NotExamined]:
    by_optimiser, pending = heard_steps(seen), seen.all(Pending)
    found = list(_step_first(seen, by_optimiser, least_times, share))
    if pending and not found:
        found = list(_never(seen, pending[-1], bool(by_optimiser), least_backwards))
    yield from found
    if found or by_optimiser:
        return
    if not pending:
        yield NotExamined(UNHEARD)
    elif not pending[-1].optimisers:
        yield NotExamined("no optimiser is known that holds parameters of the model")
    elif pending[-1].counts.get(CallKind.BACKWARD, 0):
        yield NotExamined(f"no step came yet, after {pending[-1].counts['backward']} backwards")


def _step_first(seen: Seen, by_optimiser: dict[int, list[Step]], least_times: int, share: float) -> Iterator[Evidence]:
    for number, steps in by_optimiser.items():
        early = [step for step in steps if steps_before_backward(step)]
        if len(early) < least_times or len(early) < share * len(steps):
            continue
        yield Evidence(
            summary=f"{len(early)} of {len(steps)} steps came before the backward: what that computed was cleared before the "
            "next step could use it",
            where=f"optimiser {number}" if len(by_optimiser) > 1 else None,
            location=place_of(seen, CallKind.STEP, optimiser=number),
            numbers={"early": len(early), "steps": len(steps)},
            fix="Move optimizer.step() to after loss.backward().",
            first_step=began(steps, early[0]),
            last_step=early[-1].step,
        )


def _never(seen: Seen, pending: Pending, others_step: bool, least_backwards: int) -> Iterator[Evidence]:
    """Of an optimiser that starts later we hear only at the end that it never did."""
    if any(kind.startswith("skipped") for kind in pending.counts):
        return
    ended = came_to_its_end(seen)
    wasted = not others_step and pending.counts.get(CallKind.ZERO_GRAD, 0) >= pending.counts.get(CallKind.BACKWARD, 0) / 2
    enough = least_backwards if ended else MANY_WASTED if wasted else MANY_BACKWARDS
    for number, backwards in pending.idle.items():
        if backwards < enough or (others_step and not ended):
            continue
        if pending.counts.get("discarded-step"):
            yield _discarded(seen, backwards)
            continue
        who = f"optimiser {number}" if others_step or pending.optimisers > 1 else "the optimiser"
        yield Evidence(
            summary=f"{backwards} backwards gave gradients to what {who} holds, and it never stepped",
            where=f"optimiser {number}" if pending.optimisers > 1 else None,
            location=place_of(seen, CallKind.BACKWARD),
            numbers={"backwards": backwards, "steps": 0},
            # Its turn may have been planned for later.
            severity=Severity.WARNING if others_step else None,
            confidence=Confidence.LIKELY if others_step else None,
            strength=float(backwards),
        )


def _discarded(seen: Seen, times: int) -> Evidence:
    return Evidence(
        summary=f"{times} times new weights were computed, and none were kept: every gradient was taken at the very same weights",
        location=place_of(seen, CallKind.UPDATE),
        numbers={"backwards": times, "steps": 0},
        fix="Assign what the update returns, and go on with that: params = apply_updates(params, updates).",
        strength=float(times),
    )
