"""The analytic gradient differs from the numerical one."""

import re
from collections.abc import Iterator

from sleuth.checks.evidence.gradient_words import REPEATS, cure, decay_in_gradients, in_words
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Connection, GradientCheck, GradientError

# In float64 honest gradients agree to about 1e-7; a missing factor or sign is a matter of tens of percent.
WRONG = 1e-2
# The mismatch must stand this far above what the numerical gradient itself wavers by.
BEYOND_NOISE = 20.0
# Backwards that differ from the derivative on purpose: straight-through estimators, reversal, surrogates, clipping.
MEANT = re.compile(
    r"rever|grl|straight|(^|[a-z_])STE|^ste|quant|round|sign|binar|surrogate|spik|heaviside|clip|clamp|scale|stop|gumbel|fake",
    re.I,
)


@check(
    code="M228",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.LIKELY,
    reads=(GradientCheck,),
    explains=(
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "loss-not-finite",
        "loss-diverges",
        "loss-oscillates",
        "exploding-gradients",
        "vanishing-gradients",
        "step-changes-nothing",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "learns-without-input",
        "capacity-too-small",
        "underfitting",
    ),
    title="A gradient is not the derivative of the loss",
    why="""Moving a parameter a little changes the loss otherwise than its gradient says. A hand-written backward has a wrong
    sign, a missing factor or a missing term, so every step goes astray.""",
    fix="""Derive the backward of the operation again and check it alone with torch.autograd.gradcheck (or central differences) in
    float64.""",
    decided_by="the analytic against the numerical gradient, in float64",
    symptoms=(
        "custom backward is wrong",
        "gradcheck failed",
        "autograd Function gives the wrong gradient",
        "Jacobian mismatch",
        "hand-written gradient does not train",
    ),
)
def gradient_wrong(seen: Seen, *, wrong: float = WRONG) -> Iterator[Evidence | NotExamined]:
    found = seen.one(GradientCheck)
    if found.repeat:
        yield _repeat(found)
        return
    if not found.parameters:
        yield NotExamined("no parameter could be judged: the loss is not smooth around the start")
        return
    bad = [p for p in found.parameters if p.relative_error > max(wrong, BEYOND_NOISE * p.noise)]
    decayed = [p for p in bad if p.term is not None and p.term.kind == "decay"]
    if bad and len(decayed) == len(bad):
        yield NotExamined(decay_in_gradients(decayed[0]))
        return
    bad = [p for p in bad if p not in decayed]
    if not bad:
        return
    connection = seen.maybe(Connection)
    reason = _by_design(connection, bad) if connection is not None else None
    yield NotExamined(reason) if reason is not None else _evidence(found, bad, connection, wrong)


def _evidence(found: GradientCheck, bad: list[GradientError], connection: Connection | None, wrong: float) -> Evidence:
    told = [p for p in bad if p.term is not None]
    # Gradients flow from the loss: of those that are known, the nearest to it was spoilt first.
    worst = told[-1] if told else max(bad, key=lambda p: p.relative_error)
    custom = connection.custom if connection is not None else None
    return Evidence(
        where=worst.path,
        location=worst.location or _only_line(connection),
        summary=in_words(worst, bad)
        if told
        else f"the gradient of {worst.path} says {worst.analytic:.3g} where the loss really "
        f"changes by {worst.numeric:.3g}{_factor(worst)}; {len(bad)} of {len(found.parameters)} parameters are off"
        f"{_right_behind(bad, found.parameters)}{_blame(custom)}",
        numbers={
            "analytic": worst.analytic,
            "numeric": worst.numeric,
            "relative_error": worst.relative_error,
            "noise": worst.noise,
            "parameters": len(bad),
            **({"factor": worst.term.factor} if worst.term is not None else {}),
        },
        fix=cure(worst),
        confidence=_confidence(worst, found.float64),
        strength=worst.relative_error / wrong,
    )


def _confidence(worst: GradientError, float64: bool) -> Confidence:
    if worst.term is not None:  # it agrees to five digits in several random directions
        return Confidence.CERTAIN if worst.term.kind != "factor" or abs(worst.term.factor + 1) < 1e-4 else Confidence.LIKELY
    return Confidence.LIKELY if float64 else Confidence.POSSIBLE


def _repeat(found: GradientCheck) -> Evidence:
    summary, fix = REPEATS[found.repeat]
    # A loop that is not seen may reset what adds up.
    sure = Confidence.LIKELY if found.repeat == "accumulates" else Confidence.CERTAIN
    return Evidence(summary=summary, fix=fix, location=found.repeat_line, confidence=sure, strength=1 / WRONG)


def _right_behind(bad: list[GradientError], all_: tuple[GradientError, ...]) -> str:
    """Where the backward is the user's own: what flows back is right up to some layer."""
    names = [p.path for p in all_]
    last = max(names.index(p.path) for p in bad)
    if bad[0].location is None or last + 1 >= len(names):
        return ""
    return f"; {names[last + 1]} behind them is right, so what flows back from there goes wrong on its way to {names[last]}"


def _by_design(connection: Connection, bad: list[GradientError]) -> str | None:
    if connection.custom is not None and not connection.custom:
        return "gradients differ from the derivative without any hand-written backward: a stop-gradient on purpose does that"
    meant = next((name for name in connection.custom or () if MEANT.search(name)), None)
    if meant is not None:
        return f"the backward of {meant} seems to differ from the derivative on purpose"
    certain = [cut for cut in connection.cuts if cut.certain]
    if certain:
        place = f"{certain[0].operation} at {certain[0].location}"
        return f"the graph is cut by {place}, so that gradient and derivative differ by design"
    return None


def _only_line(connection: Connection | None) -> Location | None:
    """Of the backward, where one alone is written by hand."""
    if connection is None or len(connection.custom or ()) != 1 or len(connection.custom_lines) != 1:
        return None
    return connection.custom_lines[0]


def _factor(error: GradientError) -> str:
    if error.ratio is None:
        return ""
    return ", the opposite sign" if abs(error.ratio + 1) < 0.01 else f", always {error.ratio:.3g} times"


def _blame(custom: tuple[str, ...] | None) -> str:
    return f"; hand-written backward: {', '.join(custom[:3])}" if custom else ""
