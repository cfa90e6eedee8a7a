"""The model is trained while dropout and batch-norm are switched off."""

from collections.abc import Iterator
from dataclasses import replace

from sleuth.checks.evidence.loop import FORWARDS, UNHEARD, began, heard_steps, place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import CallKind, Modes, Step
from sleuth.core.reading.lines import beside
from sleuth.core.stage import Severity, Stage
from sleuth.core.words import counted

# Some steps may be meant: a last adjustment, a warm-up.
LEAST_STEPS = 8
SHARE = 0.1


@check(
    code="T413",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step, Modes),
    explains=(
        "overfitting",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-spikes",
        "loss-not-finite",
        "exploding-gradients",
        "vanishing-gradients",
        "weights-grow",
        "underfitting",
        "signal-grows-or-fades",
        "update-too-small",
        "units-dying",
        "predicts-one-class",
        "zero-gradients",
    ),
    title="The model is trained in evaluation mode",
    why="""In evaluation mode dropout does nothing and batch-norm uses stored statistics instead of the batch's, which then never
    follow the weights. Mostly model.eval() was called for a validation, and nobody called model.train() again.""",
    fix="""Call model.train() at the start of every epoch, after each validation.""",
    decided_by="the modes of dropout and batch-norm layers when the training calls the model",
    symptoms=(
        "model overfits in spite of dropout",
        "dropout has no effect",
        "batch norm statistics do not update",
        "training gets worse after the first validation",
        "forgot model.train",
    ),
)
def training_in_eval_mode(
    seen: Seen, *, least_steps: int = LEAST_STEPS, share: float = SHARE
) -> Iterator[Evidence | NotExamined]:
    heard = [step for own in heard_steps(seen).values() for step in own]
    if not any(kind in s.calls for s in heard for kind in FORWARDS):
        yield NotExamined("calls of the model itself were not heard" if heard else UNHEARD)
        return
    # Of a step whose calls were not followed the mode is known all the same.
    trained = [s for s in seen.all(Step) if not s.calls or any(kind in s.calls for kind in FORWARDS)]
    # A step that also calls the model in training mode uses the other calls for something else, such as attacks.
    asleep = [s for s in trained if (CallKind.FORWARD not in s.calls if s.calls else not s.training)]
    modes = [m for m in seen.all(Modes) if m.graph]
    resting = _resting([m for m in modes if not m.root])
    if resting and len(asleep) >= least_steps and len(asleep) >= share * len(trained):
        yield _evidence(seen, asleep[0], trained, resting, len(asleep))
    elif (alone := _alone(modes)) is not None:
        paths, since, line = alone
        after = [s for s in trained if s.step >= since]
        if len(after) >= least_steps and len(after) >= share * len(trained):
            yield _by_flag(_evidence(seen, after[0], trained, paths, len(after)), line)
    elif (left := _left_behind([m for m in modes if m.root])) is not None:
        paths, since = left
        after = [s for s in trained if s.step >= since]
        if len(after) >= least_steps and len(after) >= share * len(trained):
            yield _evidence(seen, after[0], trained, paths, len(after))
    elif len(trained) < least_steps:
        yield NotExamined(f"only {len(trained)} steps were seen")


def _evidence(seen: Seen, first: Step, trained: list[Step], resting: list[tuple[str, str]], times: int) -> Evidence:
    families = sorted({family for _, family in resting})
    since = began(trained, first)
    switched = place_of(seen, CallKind.EVAL)
    # A train() that comes too seldom, else the eval() that nothing takes back.
    place = (
        place_of(seen, CallKind.TRAIN) or switched or place_of(seen, CallKind.FORWARD_IN_EVAL) or place_of(seen, CallKind.FORWARD)
    )
    return Evidence(
        summary=f"from {'the first step' if since is None else f'step {since}'} on, {times} of {len(trained)} training steps "
        f"ran with {counted(len(resting), 'layer')} in evaluation mode ({', '.join(families)}){_since(place, switched)}",
        where=resting[0][0] or None,
        location=place,
        numbers={"in_eval": times, "steps": len(trained), "layers": len(resting)},
        first_step=since,
        last_step=trained[-1].step,
        strength=times / len(trained),
    )


def _since(place: Location | None, switched: Location | None) -> str:
    return f"; eval(){beside(place, switched)} is not taken back in time" if beside(place, switched) else ""


def _by_flag(evidence: Evidence, location: Location | None) -> Evidence:
    return replace(
        evidence,
        location=location or evidence.location,
        summary=f"{evidence.summary}: only the model's own flag says training, everything inside it is in evaluation mode",
        fix="Call model.train(), which reaches every layer, instead of setting model.training = True; a train() of your own must "
        "call super().train(mode).",
    )


def _alone(modes: list[Modes]) -> tuple[list[tuple[str, str]], int, Location | None] | None:
    """Nobody puts every single layer into evaluation mode and the model around them into training mode on purpose."""
    latest = [m for m in modes if m.root][-1:]
    if not latest or not latest[0].alone or not (resting := _resting(latest)):
        return None
    since = next(i for i in range(len(modes)) if all(m.alone for m in modes[i:] if m.root))
    return resting, modes[since].step, latest[0].location


def _resting(modes: list[Modes]) -> list[tuple[str, str]]:
    """Layers of parts that are trained, with their family."""
    latest = modes[-1] if modes else None
    return [] if latest is None else [(p, latest.families[p]) for p in latest.resting if p not in latest.frozen]


def _left_behind(modes: list[Modes]) -> tuple[list[tuple[str, str]], int] | None:
    """Dropout that was active in training and is no more, although the model as a whole is back in training mode. Whoever stops
    only batch-norm on the way means it."""
    if len(modes) < 2:
        return None
    first, latest = modes[0], modes[-1]
    lost = [(p, latest.families[p]) for p in latest.resting if p in first.active and p not in latest.frozen]
    return (lost, latest.step) if any(family == "dropout" for _, family in lost) else None
