"""The same sample stands in the training set many times."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Alike, Repeats, Resemblance

# Well-kept sets hold about one copy in a hundred; at one in twenty the loss counts some samples twice as much as others.
SHARE = 0.05
# Where so many samples meet an equal by nature, as in a table of three yes/no columns, repeats tell nothing.
NATURAL = 0.2
FEWEST = 5
# 0: near-duplicates are not looked for. 0.1 counts samples as such that differ by a tenth of what is usual between two, in
# squared distance (of token sequences: by about a tenth of their words): images encoded anew, brightened or cropped by
# a little, rows with some noise, a sentence with another word in it.
NEAR = 0.0


@check(
    code="D108",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Repeats,),
    explains=("train-val-overlap", "validation-too-good", "overfitting"),
    title="The same samples stand in training many times",
    why="""A sample that stands there twice counts twice. A file read in two times, or copies made before the split, make
    the set look larger than it is, and the copies that fall into validation are answered by heart.""",
    fix="""Drop the copies before splitting: _, keep = np.unique(x, axis=0, return_index=True); x, y = x[keep], y[keep].""",
    decided_by="fingerprints of all training samples",
    symptoms=(
        "the same sample appears many times",
        "duplicate rows in the training set",
        "overfitting",
        "validation worse than training",
    ),
)
def duplicate_samples(seen: Seen, *, share: float = SHARE, near: float = NEAR) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Repeats)
    found = seen.maybe(Resemblance)
    alike = found.within if found is not None and near > 0 else None
    if trial.coincidence > NATURAL:
        yield NotExamined("equal inputs are natural here: the inputs can take few different values")
        return
    copies = trial.samples - trial.distinct
    if copies >= FEWEST and copies / trial.samples - trial.coincidence >= share and not trial.evens_classes:
        if trial.unending:
            yield NotExamined("the training data is a stream whose end was not reached: it may give samples again on purpose")
            return
        yield _evidence(trial, share, alike)
    # Of two that resemble each other one is the copy.
    elif alike is not None and alike.found >= FEWEST and alike.share / 2 >= share:
        yield _near(alike, share)
    elif alike is not None and alike.natural_share / 2 >= share:
        yield NotExamined(f"at near = {near:g} samples resemble each other by nature; set a smaller one to find copies")
    elif near > 0 and alike is None:
        yield NotExamined("near-duplicates were asked for, but samples could not be compared in the time")
    elif not trial.complete:
        yield NotExamined(f"only a part of the data was read: {trial.samples} samples hold no suspicious copies")


def _evidence(trial: Repeats, share: float, alike: Alike | None) -> Evidence:
    copies = trial.samples - trial.distinct
    pair = f"; samples {trial.example[0]} and {trial.example[1]} are equal" if trial.example else ""
    part = "" if trial.complete else ", which are not all there are"
    also = f". Beside these, {_resembling(alike)}" if alike is not None and alike.found else ""
    return Evidence(
        where="train",
        summary=f"{copies} of {trial.samples} training samples{part} ({copies / trial.samples:.0%}) are copies of others; "
        f"one stands there {trial.most} times{pair}{also}",
        numbers={
            "samples": trial.samples,
            "distinct": trial.distinct,
            "most": trial.most,
            **(alike.numbers() if alike is not None else {}),
        },
        strength=copies / trial.samples / share,
    )


def _near(alike: Alike, share: float) -> Evidence:
    return Evidence(
        where="train",
        summary=_resembling(alike),
        fix="Look at the pairs that are named; keep one of each before splitting, or split by where they come from.",
        numbers=alike.numbers(),
        confidence=Confidence.LIKELY,
        strength=alike.share / 2 / share,
    )


def _resembling(alike: Alike) -> str:
    pairs = ", ".join(f"{i} and {j} (difference {d:.2g})" for i, j, d in alike.examples[:3])
    return (
        f"{alike.found} of {alike.asked} training samples that were compared with all {alike.others} ({alike.share:.0%}) have a "
        f"near-duplicate, counted as they are read: {pairs}"
    )
