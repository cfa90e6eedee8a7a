"""Reports with frozen values: no machine, no clock and no check's wording enters the golden files."""

from dataclasses import replace

from sleuth import Report
from sleuth.core.diagnosis import Culprit
from sleuth.core.finding import Finding, Series
from sleuth.core.location import Location
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.views import VIEWS

FACTS = {
    "versions": {"torch": "2.13.0+cpu"},
    "read": {"train": {"samples": 1500, "complete": True}, "validation": {"samples": 297, "complete": False}},
    "inputs": [{"path": "0", "shape": [32, 64], "dtype": "float32", "min": -1.2, "max": 1.4, "mean": 0.1, "std": 0.9}],
    "target": {"path": "target", "shape": [32], "dtype": "int64", "min": 0.0, "max": 2.0, "mean": 1.0, "std": 0.8},
    "labels": {"0": 500, "1": 480, "2": 520},
    "classes": {"count": 3, "rarest": 480, "commonest": 520},
    "parameters": 15234,
    "output_shape": [[32, 3]],
    "initial_loss": {"measured": 1.098, "expected": 1.0986, "how": "ln 3 for 3 classes"},
    "one_batch": {"samples": 32, "steps": 200, "floor": 0.0, "first": 1.098, "last": 0.012, "tuned_lr": None, "tuned_last": None},
    "training": {"steps": 60, "first": 1.098, "last": 0.456, "gradient_norm": [0.1, 0.5], "validation": {"loss": 0.523}},
    "optimiser": "Adam",
    "lr": 0.001,
    "suggested_lr": 0.003,
}
STAGES = {
    "input-not-finite": Stage.DATA,
    "input-not-normalised": Stage.DATA,
    "train-val-overlap": Stage.DATA,
    "labels-misaligned": Stage.DATA,
    "double-softmax": Stage.MODEL,
    "initial-loss-off": Stage.MODEL,
    "cannot-overfit-one-batch": Stage.BATCH,
    "loss-not-decreasing": Stage.TRAINING,
    "learning-rate-too-high": Stage.HYPERPARAMETERS,
}
DOUBLE_SOFTMAX = Finding(
    code="M205",
    name="double-softmax",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    title="Softmax is applied twice",
    summary="the 32 rows given to CrossEntropyLoss lie between 0 and 1 and each sums to 1",
    why="Cross-entropy applies softmax itself. Done twice, the outputs can hardly differ and the gradient fades.",
    fix="Return the scores: remove the softmax from the end of forward",
    where="head",
    location=Location("train.py", 23, "return torch.softmax(self.head(x), dim=1)"),
    numbers={"rows": 32, "worst": float("nan")},
    series=(Series("loss", (0.0, 1.0), (2.3, float("inf"))),),
    times=2,
)
OVERFIT = replace(
    DOUBLE_SOFTMAX,
    code="B301",
    name="cannot-overfit-one-batch",
    stage=Stage.BATCH,
    title="One batch cannot be memorised",
    summary="after 200 steps 91 % of the loss is left",
    location=None,
    where=None,
    times=1,
    explained_by="double-softmax",
)
UNNORMALISED = replace(
    DOUBLE_SOFTMAX,
    code="D104",
    name="input-not-normalised",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    confidence=Confidence.LIKELY,
    title="Inputs are on a raw scale",
    summary="values reach from 0 to 255",
    fix="Divide the pixels by 255.",
    location=None,
    where="images",
    times=1,
)
HINT = replace(UNNORMALISED, severity=Severity.HINT, summary="some columns are ten times larger than others")


def report(*culprits: Culprit, **changes) -> Report:
    findings = tuple(f for c in culprits for f in (c.finding, *c.symptoms))
    found = {f.name for f in findings}
    not_examined = changes.get("not_examined", {})
    ignored = changes.get("ignored", {})
    values = {
        "source": "examine",
        "framework": "torch",
        "subject": "train.py:training",
        "steps": 60,
        "seconds": 12.3,
        "culprits": culprits,
        "findings": findings,
        "clear": tuple(n for n in STAGES if n not in {*found, *not_examined, *ignored}),
        "not_examined": not_examined,
        "ignored": ignored,
        "stage_of": STAGES,
        "examined_anything": True,
        "facts": FACTS,
        "views": VIEWS,
    }
    return Report(**{**values, **changes})


def sick() -> Report:
    return report(
        Culprit(DOUBLE_SOFTMAX, (OVERFIT,)),
        Culprit(UNNORMALISED, ()),
        not_examined={"train-val-overlap": "no validation data was given", "labels-misaligned": "no validation data was given"},
        ignored={"learning-rate-too-high": "we warm up for 1,000 steps"},
        notes=("train: read 1500 samples in 47 batches, then the time for reading was used up",),
    )


def healthy() -> Report:
    return report()


def hinted() -> Report:
    return report(Culprit(HINT, ()))


def unknown() -> Report:
    reasons = {name: "the forward pass was never run: no training batch could be read" for name in STAGES}
    return report(
        not_examined={**reasons, "input-not-finite": "no data was seen"}, examined_anything=False, facts={}, steps=0, seconds=0.4
    )


def unanswered() -> Report:
    return report(
        source="run",
        unanswered="the loss went from 7.4 to 16 in 400 steps: it ends above its start, and no check could tell why; try a rate "
        "ten times smaller first.",
    )


def interrupted() -> Report:
    late = ("cannot-overfit-one-batch", "loss-not-decreasing", "learning-rate-too-high")
    return report(
        not_examined={name: "the examination was interrupted" for name in late},
        notes=("interrupted while: Overfitting one batch; this is the report so far",),
        facts={key: value for key, value in FACTS.items() if key not in ("one_batch", "training", "suggested_lr")},
        steps=0,
        seconds=3.0,
    )


ALL = {
    "sick": sick,
    "healthy": healthy,
    "hinted": hinted,
    "unknown": unknown,
    "unanswered": unanswered,
    "interrupted": interrupted,
}
