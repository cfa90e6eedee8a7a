"""Validation data is scaled or preprocessed otherwise than training data."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Batch, Split
from sleuth.core.stage import Severity, Stage
from sleuth.core.statistics import Statistics
from sleuth.core.trial import Drift

# A mean or a spread is known to about a sixth of the spread from so many samples; a shift of a whole spread is then no accident.
SAMPLES = 36
# A random split, and a moderate drift over time, keep the typical feature within a fraction of its spread.
MOVED = 1.0
STRETCHED = 2.0
# A stream that drifts with the world stays nearer to its past; so many times farther away something has broken.
BROKEN = 3.0


@check(
    code="D115",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Batch,),
    explains=("overfitting", "validation-too-good"),
    title="Validation data is prepared differently",
    why="""The model learns the scale and offset of its training inputs. Validation inputs on another scale are a
    different task: the measured loss says nothing about how well training went.""",
    fix="""Put validation through the same preprocessing, with the mean and standard deviation computed on the
    training set.""",
    decided_by="mean and spread of each column in training against validation",
    symptoms=(
        "validation worse than training",
        "validation loss is huge",
        "val loss goes up",
        "test accuracy far below training accuracy",
        "overfitting",
        "good in training, bad on new data",
        "forgot to normalise the validation set",
    ),
)
def train_val_shift(seen: Seen, *, moved: float = MOVED, stretched: float = STRETCHED) -> Iterator[Evidence | NotExamined]:
    if not seen.batches(Split.VALIDATION):
        yield NotExamined("no validation data was given")
        return
    if min(sum(b.size for b in seen.batches(s)) for s in Split) < SAMPLES:
        yield NotExamined(f"fewer than {SAMPLES} samples in training or validation")
        return
    drift = seen.maybe(Drift)
    # Of a training that was followed what it ends with counts: easy samples may come first by design.
    if drift is None:
        pairs = _pairs(seen.features(Split.TRAIN), seen.features(Split.VALIDATION))
    else:
        pairs = _pairs(_rows(drift.late), _rows(drift.late_validation))
    if isinstance(pairs, NotExamined):
        yield pairs
        return
    found = _compare(pairs)
    if found.is_off(moved, stretched):
        since = None if drift is None or drift.began is None else drift.began
        before = None if drift is None else _pairs(_rows(drift.early), _rows(drift.early_validation))
        late = isinstance(before, list) and not _compare(before).is_off(moved, stretched)
        yield _evidence(found, since if late else None, moved, stretched)


@dataclass(frozen=True)
class Comparison:
    """Of the typical feature; `worst` is the one that differs most, in training and in validation."""

    shift: float
    stretch: float
    features: int
    worst: tuple[Statistics, Statistics]

    def is_off(self, moved: float, stretched: float) -> bool:
        return self.shift > moved or not 1 / stretched < self.stretch < stretched


def _rows(table: np.ndarray) -> list[Statistics]:
    return [Statistics.from_row(row) for row in table]


def _pairs(train: list[Statistics], validation: list[Statistics]) -> list[tuple[Statistics, Statistics]] | NotExamined:
    if not train or len(train) != len(validation):
        return NotExamined("the inputs have no features that can be compared one by one")
    return [(t, v) for t, v in zip(train, validation, strict=True) if t.std > 0] or NotExamined(
        "every training feature is constant"
    )


def _compare(pairs: list[tuple[Statistics, Statistics]]) -> Comparison:
    shifts = np.array([abs(v.mean - t.mean) / max(t.std, v.std) for t, v in pairs])
    stretches = np.array([max(v.std, 1e-3 * t.std) / t.std for t, v in pairs])
    worst = pairs[int(np.argmax(shifts + np.abs(np.log(stretches))))]
    return Comparison(float(np.median(shifts)), float(np.median(stretches)), len(pairs), worst)


def _evidence(found: Comparison, since: int | None, moved: float, stretched: float) -> Evidence:
    t, v = found.worst
    example = f"(one feature: training {t.mean:.3g} ± {t.std:.3g}, validation {v.mean:.3g} ± {v.std:.3g})"
    numbers = {"median_shift": found.shift, "median_stretch": found.stretch, "features": found.features}
    strength = max(found.shift / moved, found.stretch / stretched, 1 / (found.stretch * stretched))
    if since is None:
        return Evidence(
            summary=f"the typical feature has {found.stretch:.2g} times the spread of training, its mean is {found.shift:.2g} "
            f"spreads away {example}",
            numbers=numbers,
            strength=strength,
        )
    return Evidence(
        summary=f"from about step {since} on the training inputs are no longer what they were: the typical feature of validation "
        f"has {found.stretch:.2g} times their spread, its mean is {found.shift:.2g} spreads away {example}; before that they "
        "were alike",
        fix="""Look at what the source gives from that step on. Normalise each batch by running values of its own time, or have
        the validation data follow the drift, if it is one of the world.""",
        numbers={**numbers, "since": since},
        severity=Severity.ERROR if strength >= BROKEN else Severity.WARNING,
        first_step=since,
        strength=strength,
    )
