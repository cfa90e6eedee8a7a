"""NaN or Inf in the inputs."""

import math
from collections.abc import Iterator

import numpy as np

from sleuth.checks.evidence.blame import samples_blamed, suspect_at
from sleuth.core.check import Evidence, Seen, check
from sleuth.core.observation import ArrayFacts, Batch, NotFinite, Role
from sleuth.core.stage import Confidence, Severity, Stage

MOST_NAMED = 3


@check(
    code="D101",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Batch, NotFinite),),
    explains=(
        "output-not-finite",
        "loss-not-finite",
        "gradient-not-finite",
        "input-not-normalised",
        "loss-not-decreasing",
        "loss-diverges",
        "cannot-overfit-one-batch",
        "forward-fails",
        "backward-fails",
        "initial-loss-off",
        "step-changes-nothing",
        "train-eval-disagree",
        "collapsed-output",
        "capacity-too-small",
    ),
    title="Inputs hold NaN or Inf",
    why="""One NaN in a sample makes every value computed from it NaN: the loss of its batch, then all gradients,
    then after one step all weights. Most often a value is missing in a table, or a scaling divided by zero.""",
    fix="""Fill or drop what is missing before training: x = torch.nan_to_num(x), or rows = np.isfinite(x).all(1); x, y = x[rows],
    y[rows]. If a scaling made them, add a small epsilon to its divisor.""",
    decided_by="the count of NaN and Inf in each column of the batches",
    symptoms=(
        "loss is nan",
        "loss is nan from the first batch",
        "nan in the input data",
        "inputs contain inf",
        "missing values in the data",
        "output is nan for some samples",
    ),
)
def input_not_finite(seen: Seen) -> Iterator[Evidence]:
    # A training that broke at such a batch: the step was taken apart, and nothing else was to blame.
    met = next((n for n in seen.all(NotFinite) if n.what == "input"), None)
    if met is not None:
        yield _in_training(seen, met)
        return
    bad = [b for b in seen.all(Batch) if any(_counts(facts, b) for facts in b.inputs)]
    if not bad or _model_copes(seen, bad):
        return
    nans = sum(f.statistics.nans for b in bad for f in b.inputs if _counts(f, b))
    infs = sum(f.statistics.infs for b in bad for f in b.inputs if _counts(f, b))
    first = bad[0]
    path = next(f.path for f in first.inputs if _counts(f, first))
    columns = _columns(bad)
    place = f" in {first.feature_axis} {', '.join(map(str, columns[:MOST_NAMED]))}" if columns else ""
    more = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
    samples = sum(len(b.bad_inputs) for b in bad)
    yield Evidence(
        where=f"{path}, {first.feature_axis} {columns[0]}" if columns else path,
        summary=f"the {first.split.value} inputs hold {_amount(nans, infs)} in {samples} samples{place}{more}; "
        f"the first is sample {first.bad_inputs[0] if first.bad_inputs else '?'} of batch {first.index}",
        numbers={"nans": nans, "infs": infs, "samples": samples, "batches": len(bad), "first_batch": first.index},
        strength=float(samples),
    )


def _in_training(seen: Seen, met: NotFinite) -> Evidence:
    blamed, suspect = samples_blamed(seen, met.step), suspect_at(seen, met.step)
    return Evidence(
        where="input",
        summary=f"the batch of step {met.step} holds {_amount(met.nans, met.infs)}" + (f": {blamed}" if blamed else ""),
        numbers={
            "step": met.step,
            "nans": met.nans,
            "infs": met.infs,
            **({"sample": suspect.index, "position": suspect.position} if suspect is not None else {}),
        },
        first_step=met.step,
        strength=float(met.nans + met.infs),
    )


def _counts(facts: ArrayFacts, batch: Batch) -> bool:
    """Is this array ill? An additive mask, zero where one may look and -inf where not, is as it should be."""
    measured = facts.statistics
    if measured.all_finite:
        return False
    mask = len(batch.inputs) > 1 and measured.nans == 0 and measured.min == measured.max == 0
    return not mask


def _model_copes(seen: Seen, bad: list[Batch]) -> bool:
    """A model that fills in missing values itself computes finite numbers from such a batch, forward and backward.

    Forward alone does not tell: a gate that saturates at an Inf is finite, its gradient is not.
    """
    # A step that broke was taken apart, and its inputs were cleared of it.
    broken = min((n.step for n in seen.all(NotFinite)), default=math.inf)
    gradients = [frame for frame in seen.frames(Role.GRADIENT) if frame.step < broken]
    if any(not s.all_finite for frame in gradients for s in frame.statistics().values()):
        return False
    frames = {frame.step: frame for frame in seen.frames(Role.ACTIVATION)}
    met = [frames[b.index] for b in bad if b.split.value == "train" and b.index in frames]
    return bool(met) and all(s.all_finite and s.count for frame in met for s in frame.statistics().values())


def _columns(bad: list[Batch]) -> list[int]:
    tables = [b.features for b in bad if b.features is not None]
    tables = [t for t in tables if t.shape == tables[0].shape]
    if not tables:
        return []
    return [int(i) for i in np.flatnonzero(sum(t[:, 7] + t[:, 8] for t in tables))]


def _amount(nans: int, infs: int) -> str:
    parts = [f"{nans} NaN"] if nans else []
    parts += [f"{infs} Inf"] if infs else []
    return " and ".join(parts)
