"""Validation data is scaled or preprocessed otherwise than training data."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Batch, Split
from sleuth.core.stage import Severity, Stage

# A mean or a spread is known to about a sixth of the spread from so many samples; a shift of a whole spread is then no accident.
SAMPLES = 36
# A random split, and a moderate drift over time, keep the typical feature within a fraction of its spread.
MOVED = 1.0
STRETCHED = 2.0


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
    train, validation = seen.features(Split.TRAIN), seen.features(Split.VALIDATION)
    if not seen.batches(Split.VALIDATION):
        yield NotExamined("no validation data was given")
        return
    if not train or len(train) != len(validation):
        yield NotExamined("the inputs have no features that can be compared one by one")
        return
    if min(sum(b.size for b in seen.batches(s)) for s in Split) < SAMPLES:
        yield NotExamined(f"fewer than {SAMPLES} samples in training or validation")
        return
    pairs = [(t, v) for t, v in zip(train, validation, strict=True) if t.std > 0]
    if not pairs:
        yield NotExamined("every training feature is constant")
        return
    shifts = np.array([abs(v.mean - t.mean) / max(t.std, v.std) for t, v in pairs])
    stretches = np.array([max(v.std, 1e-3 * t.std) / t.std for t, v in pairs])
    shift, stretch = float(np.median(shifts)), float(np.median(stretches))
    if shift > moved or not 1 / stretched < stretch < stretched:
        t, v = pairs[int(np.argmax(shifts + np.abs(np.log(stretches))))]
        yield Evidence(
            summary=f"the typical feature has {stretch:.2g} times the spread of training, its mean is {shift:.2g} spreads away "
            f"(one feature: training {t.mean:.3g} ± {t.std:.3g}, validation {v.mean:.3g} ± {v.std:.3g})",
            numbers={"median_shift": shift, "median_stretch": stretch, "features": len(pairs)},
            strength=max(shift / moved, stretch / stretched, 1 / (stretch * stretched)),
        )
