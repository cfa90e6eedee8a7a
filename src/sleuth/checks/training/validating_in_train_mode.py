"""Dropout or batch-norm is active while the model is validated."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import UNHEARD, heard_steps, place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import CallKind, Modes, Phase, Recurrence, Step
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.words import counted

# Of the steps: calls without gradients before nearly every step belong to the training (a teacher, a target, an actor).
SHARE = 0.5
# Whoever asks the same thing again and again wants the noise of dropout.
REPEATED = 0.5
IN_TRAIN = CallKind.VALIDATE_IN_TRAIN


@check(
    code="T414",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step,),
    explains=("validation-not-deterministic", "validation-too-good", "underfitting", "overfitting", "metric-misread"),
    title="The model is validated in training mode",
    why="""With dropout active the model answers with a part of itself, and with batch-norm in training mode its answer for one
    sample depends on the others, while the validation data leak into the stored statistics. The figures are not those of the
    model that will be used.""",
    fix="""Call model.eval() before the validation and model.train() after it.""",
    decided_by="the modes of dropout and batch-norm layers when the model is called without gradients",
    symptoms=(
        "validation is worse than it should be",
        "validation accuracy is noisy",
        "different results for the same input",
        "forgot model.eval",
        "validation loss jumps",
    ),
)
def validating_in_train_mode(seen: Seen, *, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    steps = [step for own in heard_steps(seen).values() for step in own]
    phases = seen.all(Phase)
    if not steps:
        yield NotExamined(UNHEARD)
        return
    if not phases:
        yield NotExamined("no validation was seen: the model was not called several times in a row without training")
        return
    modes = [m for m in seen.all(Modes) if not m.graph and m.root]
    told = [m for m in modes if not m.recalibrating]
    active = told[-1].active if told else ()
    recalibrated = {m.step for m in modes if m.recalibrating}
    # Several passes over the same data want the noise, too.
    passes = {r.step for r in seen.all(Recurrence) if not r.trained and r.again > REPEATED * r.rows}
    suspects = [p for p in phases if _validates(p) and p.step not in recalibrated | passes]
    proper = sum(p.kind == CallKind.VALIDATE for p in phases)
    yield from _wired_in(seen, [p for p in phases if p.kind == CallKind.VALIDATE and p.step > 0])
    if not active or not suspects or proper >= len(suspects) or len(suspects) > share * seen.count(Step):
        return
    # One that came after the training may be something else that is meant.
    if len(suspects) < 2 and not suspects[0].last:
        return
    families = sorted({told[-1].families[path] for path in active})
    yield Evidence(
        summary=f"{counted(len(suspects), 'time')} the model was validated ({sum(p.calls for p in suspects)} calls without "
        f"gradients) while {counted(len(active), 'layer')} ({', '.join(families)}) acted as in training",
        where=active[0] or None,
        location=place_of(seen, CallKind.TRAIN_TO_VALIDATE) or place_of(seen, CallKind.WIRED_IN) or place_of(seen, IN_TRAIN),
        numbers={"validations": len(suspects), "calls": sum(p.calls for p in suspects), "layers": len(active)},
        confidence=Confidence.LIKELY if len(suspects) > 1 else Confidence.POSSIBLE,
        last_step=suspects[-1].step,
        strength=float(len(suspects)),
    )


def _wired_in(seen: Seen, proper: list[Phase]) -> Iterator[Evidence]:
    """The model is asked to evaluate, and a batch-norm in it takes the statistics of the batch all the same. A dropout that is
    always on may be meant: whoever asks many times learns how sure the model is."""
    modes = [m for m in seen.all(Modes) if not m.graph]
    last = modes[-1] if modes else None
    if last is None or last.root or last.recalibrating or len(proper) < 2:
        return
    norms = [path for path in last.active if last.families[path] == "batchnorm" and path not in last.frozen]
    if norms and not any(last.families[path] == "batchnorm" for path in last.resting):
        yield Evidence(
            summary=f"{counted(len(proper), 'time')} it was validated in evaluation mode, but {counted(len(norms), 'layer')} "
            "(batchnorm) acted as in training: its answer for a sample depends on the others of the batch",
            where=norms[0] or None,
            location=place_of(seen, CallKind.WIRED_IN),
            fix="Leave the mode of the batch-norm to the model: take out what switches it to training.",
            numbers={"validations": len(proper), "layers": len(norms)},
            confidence=Confidence.LIKELY,
            last_step=proper[-1].step,
            strength=float(len(proper)),
        )


def _validates(phase: Phase) -> bool:
    """Before the first step a model may be prepared by showing it data."""
    return phase.kind == IN_TRAIN and phase.step > 0 and phase.repeated < REPEATED * phase.calls
