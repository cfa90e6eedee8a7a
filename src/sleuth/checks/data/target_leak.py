"""One feature gives the target away."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Giveaway

# The next best column of honest sets errs at most a few times as often as the best: good columns come in company.
NEXT_ERROR, NEXT_TIMES = 0.05, 5.0
CHANCE = 1e-6
# Clouds of points that are easily told apart lie 5 to 10 spreads from each other in their best column, and toys of a few
# columns even more; a class with a little noise on top lies farther.
SEPARATION = 9.0
FEW_COLUMNS, FEW_SEPARATION = 6, 20.0
# What the other columns must tell for there to be a task beside the leak: else the column may be the task itself.
HONEST_SKILL, HONEST_LEVEL = 0.02, 1e-3
# With others that tell nearly all, the best column may be an honest one among equals.
NEARLY_ALL = 0.8


@check(
    code="D112",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Giveaway,),
    explains=("validation-too-good", "learns-without-input", "capacity-too-large"),
    title="One column gives the target away",
    why="""A column that predicts the target almost perfectly, where all others are far behind, was often made from it: a code of
    the outcome, a value that is filled in afterwards, the row number of a sorted file. The model learns that column and nothing
    else, validation looks splendid, and in use the column is not there.""",
    fix="""Ask whether this column is known at the time of prediction. If not, drop it: x = np.delete(x, i, axis=1).""",
    decided_by="how well each single feature predicts the target",
    symptoms=(
        "accuracy is 100 % at once",
        "too good to be true",
        "one feature gives the label away",
        "perfect validation accuracy, useless in production",
        "target leakage",
    ),
)
def target_leak(
    seen: Seen, *, next_error: float = NEXT_ERROR, next_times: float = NEXT_TIMES, separation: float = SEPARATION
) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Giveaway)
    if not trial.accused or trial.p_value > CHANCE:
        return
    if trial.next_error < max(next_error, next_times * trial.error):
        return
    if trial.separation is not None and trial.separation < (separation if trial.columns >= FEW_COLUMNS else FEW_SEPARATION):
        return
    doubt = _doubt(trial)
    if doubt is not None:
        yield NotExamined(f"{trial.accused[0]} alone tells the target, but {doubt}")
        return
    yield _evidence(trial)


def _doubt(trial: Giveaway) -> str | None:
    if trial.series:
        return "the rows follow each other in time, where the last value is nearly the next"
    if trial.rest_skill is None or trial.rest_p_value is None:
        return "the other columns could not be asked"
    if trial.rest_skill < HONEST_SKILL or trial.rest_p_value > HONEST_LEVEL:
        return "no other column tells anything about it: this column may be the task itself"
    return None


def _evidence(trial: Giveaway) -> Evidence:
    column = trial.accused[0]
    # A number that is nearly known may be an honest measurement, or yesterday's value.
    sure = trial.copied or (trial.classes > 0 and (trial.rest_skill or 0) < NEARLY_ALL)
    others = f"; so does {', '.join(trial.accused[1:])}" if len(trial.accused) > 1 else ""
    held = " (it holds the target itself)" if trial.copied else ""
    part = "" if trial.complete or trial.total is None else f" of {trial.total}"
    return Evidence(
        where=column,
        summary=f"{column} by itself {_says(trial)}{held} on {trial.samples}{part} held-out samples, while the next best, "
        f"{trial.next_column}, {_next(trial)}{others}",
        numbers={
            "samples": trial.samples,
            "total": trial.total,
            "complete": trial.complete,
            "columns": trial.columns,
            "error": trial.error,
            "next_error": trial.next_error,
            "separation": trial.separation,
            "rest_skill": trial.rest_skill,
            "p_value": trial.p_value,
        },
        confidence=Confidence.LIKELY if sure else Confidence.POSSIBLE,
        fix=f"Ask whether {column} is known at the time of prediction. If not, drop it: "
        f"x = np.delete(x, {column.split()[-1]}, axis=1).",
        strength=trial.next_error / max(trial.error, 0.01),
    )


def _says(trial: Giveaway) -> str:
    if trial.classes:
        return f"names the right one of {trial.classes} classes in {1 - _wrong(trial.error, trial):.1%}"
    return f"explains {1 - trial.error:.2%} of the target's variance"


def _next(trial: Giveaway) -> str:
    return f"does in {1 - _wrong(trial.next_error, trial):.0%}" if trial.classes else f"explains {1 - trial.next_error:.0%}"


def _wrong(error: float, trial: Giveaway) -> float:
    return error * (1 - 1 / trial.classes)
