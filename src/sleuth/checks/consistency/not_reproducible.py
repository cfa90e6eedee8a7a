"""Two runs from one seed differ."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import TwoTrainings

# Sums in another order differ in their last digits; other random numbers differ in the first.
ROUNDING = 1e-5
WHAT = {"activation": "what {where} puts out", "loss": "the loss", "weight": "{where}"}


@check(
    code="C704",
    stage=Stage.CONSISTENCY,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(TwoTrainings,),
    title="Two trainings from one seed differ",
    why="""A seed reaches only the generators that it is given to. Numbers from a generator that is made anew without a seed, from
    the clock or from the system come out otherwise in every run, so that a result cannot be had again and two settings cannot be
    compared without many runs of each.""",
    fix="""Give every generator a seed (numpy.random.default_rng(seed) instead of default_rng(), a generator= for the loader), or
    draw from the global one that you seed. Where fresh numbers are meant, leave it and say so with ignore.""",
    decided_by="the first steps taken twice from the same weights, random states and batches, compared bit by bit",
    symptoms=(
        "results are not reproducible",
        "different results every run with the same seed",
        "seed does not work",
        "loss differs between identical runs",
        "non-deterministic training",
    ),
)
def not_reproducible(seen: Seen, *, rounding: float = ROUNDING) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(TwoTrainings)
    if trial.data_differs is not None:
        yield Evidence(
            summary=f"batch {trial.data_differs} of the training data came out otherwise when it was read again from the same "
            "random states: numbers are drawn that no seed reaches",
            where="train",
            numbers={"batch": trial.data_differs},
            fix="Let the order and the augmentation of the data draw from a generator with a seed, or from the global one.",
        )
    elif trial.step is not None:
        yield _parted(trial, rounding)


def _parted(trial: TwoTrainings, rounding: float) -> Evidence:
    small = trial.difference <= rounding
    cause = "sums are taken in another order each time" if small else "numbers are drawn that no seed reaches"
    what = WHAT[trial.what].format(where=trial.where)
    return Evidence(
        summary=f"taken twice from the same start, step {trial.step} parts in {what}, by {trial.difference:.1e} of its size: "
        f"{cause}",
        where=trial.where,
        numbers={"step": trial.step, "what": trial.what, "difference": trial.difference},
        severity=Severity.HINT if small else None,
        fix="Ask the framework for deterministic algorithms where the last digits matter." if small else None,
        first_step=trial.step,
    )
