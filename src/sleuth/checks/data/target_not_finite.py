"""NaN or Inf in the targets."""

from collections.abc import Iterator

from sleuth.checks.evidence.blame import samples_blamed, suspect_at
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Batch, LossCall, NotFinite, Role, Split, Step
from sleuth.core.stage import Confidence, Severity, Stage


@check(
    code="D102",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Batch, NotFinite),),
    explains=(
        "loss-not-finite",
        "gradient-not-finite",
        "target-not-scaled",
        "target-out-of-range",
        "wrong-loss-for-task",
        "loss-not-decreasing",
        "loss-diverges",
        "cannot-overfit-one-batch",
        "initial-loss-off",
        "backward-fails",
        "step-changes-nothing",
        "capacity-too-small",
    ),
    title="Targets hold NaN or Inf",
    why="""The loss of a sample whose target is NaN is NaN, and so is the mean over its batch: one step with it makes every
    weight NaN. Most often a label is missing, or a logarithm of zero was taken.""",
    fix="""Drop the samples without a target: rows = np.isfinite(y); x, y = x[rows], y[rows]. If some targets are meant to be
    missing, leave them out of the loss: known = ~torch.isnan(y); loss = criterion(output[known], y[known]).""",
    decided_by="the count of NaN and Inf among the targets",
    symptoms=(
        "loss is nan",
        "nan in the labels",
        "targets contain inf",
        "missing labels",
    ),
)
def target_not_finite(seen: Seen) -> Iterator[Evidence | NotExamined]:
    met = next((n for n in seen.all(NotFinite) if n.what == "target"), None)
    if met is not None:
        yield _in_training(seen, met)
        return
    batches = [b for b in seen.all(Batch) if b.target is not None]
    if not batches:
        yield NotExamined("the batches have no target that could be told")
        return
    bad = [b for b in batches if b.bad_targets]
    if not bad or _loss_copes(seen, bad):
        return
    nans = sum(b.target.statistics.nans for b in bad if b.target)
    infs = sum(b.target.statistics.infs for b in bad if b.target)
    samples = sum(len(b.bad_targets) for b in bad)
    what = " and ".join([f"{nans} NaN"] * bool(nans) + [f"{infs} Inf"] * bool(infs)) or "NaN or Inf"
    first = bad[0]
    yield Evidence(
        where="target",
        summary=f"{samples} of {sum(b.size for b in batches)} targets that were measured hold {what}; "
        f"the first is sample {first.bad_targets[0]} of batch {first.index} of {first.split.value}",
        numbers={"nans": nans, "infs": infs, "samples": samples, "batches": len(bad), "first_batch": first.index},
        strength=float(samples),
    )


def _in_training(seen: Seen, met: NotFinite) -> Evidence:
    blamed, suspect = samples_blamed(seen, met.step), suspect_at(seen, met.step)
    what = " and ".join([f"{met.nans} NaN"] * bool(met.nans) + [f"{met.infs} Inf"] * bool(met.infs))
    return Evidence(
        where="target",
        summary=f"the targets of step {met.step} hold {what}" + (f": {blamed}" if blamed else ""),
        numbers={
            "step": met.step,
            "nans": met.nans,
            "infs": met.infs,
            **({"sample": suspect.index, "position": suspect.position} if suspect is not None else {}),
        },
        first_step=met.step,
        strength=float(met.nans + met.infs),
    )


def _loss_copes(seen: Seen, bad: list[Batch]) -> bool:
    """A loss that leaves missing targets out is finite on a batch that holds some."""
    observed = {frame.step for frame in seen.frames(Role.ACTIVATION)}
    met = [b for b in bad if b.split is Split.TRAIN and b.index in observed]
    # In a loop that was watched, only few calls of the loss were.
    if {b.index for b in met} & {s.step for s in seen.all(Step) if s.loss is None}:
        return False
    values = [call.value for call in seen.all(LossCall)]
    return bool(met) and bool(values) and None not in values
