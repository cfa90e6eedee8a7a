"""The same model differs between frameworks, or between two versions."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Agreement

PLACES = {
    "layer": "in what {where} puts out",
    "output": "in their answers",
    "loss": "in their loss",
    "gradient": "in the gradient of {where}",
    "step": "in the first step of {where}",
}


@check(
    code="C701",
    stage=Stage.CONSISTENCY,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Agreement,),
    title="The model does not compute what its reference computes",
    why="""Frameworks agree on the names of layers and not on their defaults: the epsilon of a norm, the exact or the approximate
    gelu, padding on one side or on both, Adam with or without its bias correction, a mean or a sum in the loss. With the same
    weights such a model answers otherwise, and a checkpoint that was good in one is worse in the other.""",
    fix="""Set what differs explicitly on both sides instead of leaving it to the default, then compare again:
    sleuth.compare(a, b, batch).""",
    decided_by="outputs of every layer, loss, gradients and one step with the same weights, against what rounding explains",
    symptoms=(
        "model gives different outputs in another framework",
        "port from PyTorch to JAX does not match",
        "converted weights give worse accuracy",
        "outputs differ between Keras and PyTorch",
        "reproduction does not match the reference implementation",
        "same weights but different loss",
    ),
)
def backends_disagree(seen: Seen) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Agreement)
    if trial.unknown is not None:
        yield NotExamined(trial.unknown)
    elif trial.stage is not None:
        yield _evidence(trial)


def _evidence(trial: Agreement) -> Evidence:
    place = PLACES[trial.stage or "output"].format(where=trial.where)
    reason = f"; {trial.reason}" if trial.reason else ""
    tried = f"; tried, and not the reason: {', '.join(trial.tried)}" if trial.tried and not trial.reason else ""
    summary = (
        f"with the same weights it parts from {trial.reference} {place}, by {trial.difference:.1e} where rounding explains "
        f"{trial.explained:.1e}{reason}{tried}"
    )
    numbers = {"difference": trial.difference, "explained": trial.explained, "there": trial.there, "reason": trial.reason}
    return Evidence(summary=summary, where=trial.where, numbers=numbers)
