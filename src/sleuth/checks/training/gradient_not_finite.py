"""A gradient became NaN or Inf while the loss was finite."""

from collections.abc import Iterator

from sleuth.checks.evidence.blame import born_in, line_of, origin_at, samples_blamed, suspect_at
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import CallKind, Frame, LossCall, NotFinite, Role, Step
from sleuth.core.reading.stable_form import stable_form
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.statistics import Statistics


@check(
    code="T402",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Role.GRADIENT, NotFinite),),
    explains=("loss-not-finite", "loss-diverges"),
    title="A gradient is not a finite number",
    why="""The loss is finite, but its derivative is not: a square root at zero, a norm written by hand at zero, the unused
    branch of a where. One step writes NaN into the weights.""",
    fix="""Keep zero out of the square root: add a small constant inside it (in torch, torch.linalg.norm does without), and make
    the unused branch of a where harmless before choosing.""",
    decided_by="the count of NaN and Inf in each parameter's gradient",
    symptoms=(
        "gradients are nan",
        "loss goes down then nan",
        "weights become nan after a step",
        "sqrt of zero gives nan gradient",
    ),
)
def gradient_not_finite(seen: Seen) -> Iterator[Evidence | NotExamined]:
    met = seen.all(NotFinite)
    lost = [n.step for n in met if n.what == "loss"] + [s.step for s in seen.all(Step) if s.loss is None and s.heard]
    first = next((n for n in met if n.what == "gradient" and n.step < min(lost, default=n.step + 1)), None)
    if first is not None:
        yield _in_training(seen, first)
        return
    spoiled = next((n for n in met if n.what == "parameter"), None)
    if spoiled is not None and (written := _writer(seen, spoiled)) is not None:
        yield _by_the_weights(seen, spoiled, written)
        return
    if any(call.value is None for call in seen.all(LossCall)):
        yield NotExamined("the loss itself is not finite")
        return
    for frame in seen.frames(Role.GRADIENT):
        bad = {path: s for path, s in frame.statistics().items() if not s.all_finite}
        # A loss that is not finite makes every gradient so: that is loss-not-finite's business.
        if bad and frame.step < min(lost, default=frame.step + 1):
            yield _evidence(frame, bad)
            return


def _in_training(seen: Seen, met: NotFinite) -> Evidence:
    origin, blamed, suspect = origin_at(seen, met.step), samples_blamed(seen, met.step), suspect_at(seen, met.step)
    whose = f"the gradient of {met.where}" if met.where else "a gradient"
    parts = [f"{whose} holds {met.nans} NaN and {met.infs} Inf at step {met.step}, while the loss is finite"]
    parts += [blamed] if blamed else []
    parts += [born_in(origin)] if origin is not None else []
    return Evidence(
        where=(origin.layer if origin is not None else None) or met.where,
        location=(origin.location if origin is not None else None) or line_of(seen, CallKind.BACKWARD),
        fix=None if origin is None else stable_form(origin),
        summary="; ".join(parts),
        numbers={
            "nans": met.nans,
            "infs": met.infs,
            **({"sample": suspect.index, "position": suspect.position} if suspect is not None else {}),
            **({"operation": origin.operation, "direction": origin.direction} if origin is not None else {}),
        },
        first_step=met.step,
        last_step=met.step,
    )


def _writer(seen: Seen, spoiled: NotFinite) -> Step | None:
    """The step before, if its loss was finite and it wrote NaN. Weights that a large rate throws out are infinite first."""
    weights = [row for f in seen.frames(Role.WEIGHT) if f.step == spoiled.step for row in f.statistics().items()]
    if spoiled.infs or any(s.infs for _, s in weights) or (weights and spoiled.where not in dict(weights)):
        return None
    last = next((s for s in reversed(seen.all(Step)) if s.step == spoiled.step - 1), None)
    return last if last is not None and last.loss is not None and CallKind.SKIPPED not in last.calls else None


def _by_the_weights(seen: Seen, spoiled: NotFinite, written: Step) -> Evidence:
    return Evidence(
        where=spoiled.where,
        location=line_of(seen, CallKind.BACKWARD),
        summary=f"{spoiled.where} holds {spoiled.nans} NaN when step {spoiled.step} begins, and the loss of the step before is "
        f"{written.loss:.3g}: the gradient of step {written.step} was not finite",
        confidence=Confidence.LIKELY,
        numbers={"nans": spoiled.nans, "loss": written.loss},
        first_step=written.step,
        last_step=written.step,
    )


def _evidence(frame: Frame, bad: dict[str, Statistics]) -> Evidence:
    path, statistics = next(iter(bad.items()))
    others = f" and those of {len(bad) - 1} more parameters" if len(bad) > 1 else ""
    when = f" at step {frame.step}" if frame.step else " of the untrained model"
    return Evidence(
        where=path,
        summary=f"the gradient of {path}{others}{when} holds {statistics.nans} NaN and {statistics.infs} Inf "
        f"among {statistics.count} values, while the loss is finite",
        numbers={"parameters": len(bad), "nans": statistics.nans, "infs": statistics.infs},
        first_step=frame.step or None,
        last_step=frame.step or None,
    )
