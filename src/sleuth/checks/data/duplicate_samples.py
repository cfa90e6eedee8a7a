"""The same sample stands in the training set many times."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Repeats

# Well-kept sets hold about one copy in a hundred; at one in twenty the loss counts some samples twice as much as others.
SHARE = 0.05
# Where so many samples meet an equal by nature, as in a table of three yes/no columns, repeats tell nothing.
NATURAL = 0.2
FEWEST = 5


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
)
def duplicate_samples(seen: Seen, *, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Repeats)
    if trial.coincidence > NATURAL:
        yield NotExamined("equal inputs are natural here: the inputs can take few different values")
        return
    copies = trial.samples - trial.distinct
    if copies < FEWEST or copies / trial.samples - trial.coincidence < share or trial.evens_classes:
        return
    pair = f"; samples {trial.example[0]} and {trial.example[1]} are equal" if trial.example else ""
    yield Evidence(
        where="train",
        summary=f"{copies} of {trial.samples} training samples ({copies / trial.samples:.0%}) are copies of others; "
        f"one stands there {trial.most} times{pair}",
        numbers={"samples": trial.samples, "distinct": trial.distinct, "most": trial.most},
        strength=copies / trial.samples / share,
    )
