"""Saving and loading does not bring back the same state."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Reload

# Continued from the same state, a step differs by rounding at most.
ROUNDING = 1e-4
LISTED = 3


@check(
    code="C705",
    stage=Stage.CONSISTENCY,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Reload,),
    title="The checkpoint does not hold all of the training",
    why="""A training is more than its weights: the optimiser's moments and step counts, running statistics of norms and the rate
    belong to it. What a checkpoint leaves out begins anew when it is loaded: the loss jumps, or the training goes on as another
    one.""",
    fix="""Save and load everything that changes while training: {"model": model.state_dict(), "optimizer":
    optimizer.state_dict(), "scheduler": scheduler.state_dict()}, and load each part into its object.""",
    decided_by="the answers and the next step after loading into a fresh copy, against those of the training that went on",
    symptoms=(
        "loss jumps after resuming from a checkpoint",
        "resumed training does not match",
        "training gets worse after loading checkpoint",
        "optimizer state not saved",
        "different results after loading the model",
    ),
)
def checkpoint_incomplete(seen: Seen, *, rounding: float = ROUNDING) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Reload)
    if trial.error is not None:
        yield NotExamined(f"saving or loading raised {trial.error}")
    elif lost := _lost(trial, rounding):
        yield Evidence(
            summary=f"saved after {trial.steps} steps and loaded into a fresh copy, {lost}; "
            f"its answers differ by {trial.output:.1e}, its next step by {trial.step:.1e}",
            where=next(iter((*trial.weights, *trial.statistics)), "optimiser"),
            numbers={
                "output": trial.output,
                "step": trial.step,
                "weights": list(trial.weights),
                "statistics": list(trial.statistics),
            },
            fix=None if trial.weights or trial.statistics else "Save and load optimizer.state_dict() beside the model's.",
        )


def _lost(trial: Reload, rounding: float) -> str | None:
    if trial.weights:
        return f"{_some(trial.weights)} is not what was trained"
    if trial.statistics:
        return f"{_some(trial.statistics)} is not what it was"
    if trial.lr is not None:
        return f"the learning rate is {trial.lr[1]:g} instead of {trial.lr[0]:g}"
    if trial.output > rounding:
        return "the model is the same and answers otherwise"
    return "the optimiser has forgotten its state" if trial.step > rounding else None


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {rest} more" if rest > 0 else "")
