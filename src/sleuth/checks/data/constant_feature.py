"""A column that never varies, or samples that are blank."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import ArrayFacts, Batch, Split
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.statistics import Statistics

# In fewer samples a yes-no column is often constant by chance.
LEAST_SAMPLES = 50
# Tables with this many columns may be flattened images or one-hot codes, where empty columns are normal (7 × 7 and more).
WIDE = 49
# Colour, depth and alpha; more channels are planes of features, some of them constant on purpose.
MOST_COLOURS = 4
# Columns that are mostly zero are codes and counts: one that is always zero is a rare value, not a fault.
SPARSE = 0.5
# Of the spread of the other columns: in a picture nobody would see it.
FAINT = 0.01
# A few dark frames are life; from here on something lost its samples.
BLANK = 0.05


@check(
    code="D105",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Batch,),
    explains=("input-ignored", "dead-units", "bad-initialisation"),
    title="Some inputs never vary",
    why="""A column that is the same for every sample tells nothing apart: a join that failed, a sensor that stood still, the
    wrong column cut out. A blank sample carries a label and nothing to learn it from.""",
    fix="""Look at how this column is made: np.unique(x[:, i]). Repair its source, or drop it: x = np.delete(x, i, axis=1).""",
    decided_by="the smallest and largest value of each column over all samples",
    symptoms=(
        "a column is always the same",
        "feature has zero variance",
        "some samples are all zero",
        "std is zero, dividing by it gives nan",
    ),
)
def constant_feature(seen: Seen, *, blank: float = BLANK) -> Iterator[Evidence | NotExamined]:
    batches = [b for b in seen.batches(Split.TRAIN) if b.inputs]
    features = seen.features(Split.TRAIN)
    samples = sum(b.size for b in batches)
    if not features:
        yield NotExamined("the inputs are not a table or images of numbers")
        return
    if samples < LEAST_SAMPLES:
        yield NotExamined(f"{samples} samples are too few to say that a column never varies")
        return
    yield from _constant(batches, features, samples)
    yield from _blank(batches, samples, blank)


def _constant(batches: list[Batch], features: list[Statistics], samples: int) -> Iterator[Evidence]:
    word = next(b.feature_axis for b in batches if b.features is not None)
    constant = [i for i, f in enumerate(features) if f.finite and f.max == f.min]
    if len(constant) == len(features) > 1:
        return  # every sample is blank: the samples tell
    accused = [i for i in constant if not _is_normal(i, features, constant, _main(batches[0]), word)]
    for i in accused:
        yield Evidence(
            where=f"{word} {i}",
            summary=f"{word} {i} is {features[i].min:.4g} in every one of {samples} samples"
            + (f"; so are {len(accused) - 1} others" if len(accused) > 1 else ""),
            numbers={"value": features[i].min, "constant": len(accused), "features": len(features), "samples": samples},
            confidence=Confidence.CERTAIN,
            strength=len(accused) / len(features),
            fix=f"Look at how it is made: np.unique(x[:, {i}]). Repair its source, or drop it: x = np.delete(x, {i}, axis=1).",
        )


def _is_normal(i: int, features: list[Statistics], constant: list[int], main: ArrayFacts, word: str) -> bool:
    """Intercepts, borders of images, values of a code that do not occur."""
    value, others = features[i].min, [f for j, f in enumerate(features) if j not in constant]
    if not others or (word == "channel" and len(features) > MOST_COLOURS):
        return True
    if value == 1 and i in (0, len(features) - 1):
        return True
    if value == 0 and _share(others, lambda f: f.zero_share > SPARSE) >= 0.5:
        return True
    # Where each pixel's mean was taken off, a border that is hardly ever written on is near zero, and not at it.
    faint = abs(value) <= FAINT * float(np.median([f.std for f in others]))
    background = faint or value in (min(f.min for f in others), max(f.max for f in others))
    return word == "column" and background and _looks_like_image(main, len(features), constant)


def _looks_like_image(main: ArrayFacts, columns: int, constant: list[int]) -> bool:
    """Rows of pixels, or a flattened square of one or three colours, or a border: constant columns at both ends."""
    if len(main.shape) > 2:
        return True
    if columns < WIDE:
        return False
    square = any(columns % colours == 0 and math.isqrt(columns // colours) ** 2 == columns // colours for colours in (1, 3))
    return square or (len(constant) > 1 and (0 in constant or columns - 1 in constant))


def _share(features: list[Statistics], is_so: Callable[[Statistics], bool]) -> float:
    return sum(is_so(f) for f in features) / len(features)


def _main(batch: Batch) -> ArrayFacts:
    return next((x for x in batch.inputs if x.is_float or x.dtype == "uint8"), batch.inputs[0])


def _blank(batches: list[Batch], samples: int, blank: float) -> Iterator[Evidence]:
    empty = sum(b.blank_inputs for b in batches)
    values = sum(_main(b).statistics.count for b in batches)
    zeros = sum(_main(b).statistics.zeros for b in batches)
    filled = values * (1 - empty / samples)
    # Sparse counts, such as words of short texts, have empty rows.
    if empty <= blank * samples or (filled and (zeros - values * empty / samples) / filled > 0.9):
        return
    yield Evidence(
        where=_main(batches[0]).path,
        summary=f"{empty} of {samples} samples are blank: every value in them is the same",
        numbers={"blank": empty, "samples": samples},
        confidence=Confidence.CERTAIN,
        strength=empty / samples / blank,
        fix="Find the samples, np.flatnonzero(x.reshape(len(x), -1).std(1) == 0), and repair how they are loaded or drop them.",
    )
