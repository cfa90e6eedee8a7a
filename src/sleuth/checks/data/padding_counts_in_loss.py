"""Padded positions are learned as if they were data."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import LossCall
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Padding

# Below a tenth padding hardly moves the loss or the gradient.
SHARE = 0.1
# A loss that skips padding does not move at all; a penalty on all outputs (an activity regulariser) moves it a little.
COUNTED = 0.05


@check(
    code="D118",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Padding,),
    explains=(
        "class-imbalance",
        "initial-loss-off",
        "learns-without-input",
        "predicts-one-class",
        "collapsed-output",
        "cannot-overfit-one-batch",
        "underfitting",
        "capacity-too-small",
    ),
    title="The loss counts padding",
    why="""Short samples are filled up to the length of the longest. Where the loss counts the filling, part of every step
    teaches the model to answer padding with padding, which is easy: the loss looks better than the model is, and real
    positions weigh the less the more padding there is.""",
    fix="""Pad targets with -100, which nn.CrossEntropyLoss skips, or name the value: nn.CrossEntropyLoss(ignore_index=pad). Other
    losses: loss = loss_fn(output, target, reduction="none"); loss = (loss * mask).sum() / mask.sum().""",
    decided_by="the share of padding among the targets that enter the loss",
    symptoms=(
        "model predicts only padding tokens",
        "pad tokens in the loss",
        "loss very low but the text is garbage",
        "forgot ignore_index",
    ),
)
def padding_counts_in_loss(seen: Seen, *, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Padding)
    found = trial.padded / max(trial.targets, 1)
    if found < share or trial.padded_effect <= max(trial.rounding, COUNTED * trial.real_effect):
        return
    value = "" if trial.value is None else f"{trial.value:g}, "
    what = f"padding ({value}where the inputs hold {trial.shown_by})"
    calls = seen.all(LossCall)
    yield Evidence(
        where="target",
        location=calls[0].location if calls else None,
        summary=f"{found:.0%} of the targets in {trial.samples} samples are {what}, and the loss counts them: other answers at "
        f"padded positions alone move it from {trial.loss:.4g} by {trial.padded_effect:.2g}, as many at real ones by "
        f"{trial.real_effect:.2g}",
        fix=_fix(trial),
        numbers={
            "padded": trial.padded,
            "targets": trial.targets,
            "share": found,
            "value": trial.value,
            "padded_effect": trial.padded_effect,
            "real_effect": trial.real_effect,
        },
        strength=found / share,
    )


def _fix(trial: Padding) -> str | None:
    if not trial.whole or trial.value is None:
        return (
            "Average over real positions only: loss = nn.MSELoss(reduction='none')(output, target); "
            "loss = (loss * mask).sum() / mask.sum(), where mask is 1 at real positions and has the shape of the loss."
        )
    if trial.also_real or trial.value == -100:
        return (
            f"Pad targets with -100, which nn.CrossEntropyLoss skips: {trial.value:g} is also the target of real positions. "
            "Or average over real positions only: (loss * mask).sum() / mask.sum()."
        )
    return (
        f"Tell the loss to skip it: nn.CrossEntropyLoss(ignore_index={trial.value:g}). Or average over real positions only: "
        "(loss * mask).sum() / mask.sum()."
    )
