"""Trainable parameters that the optimiser does not hold."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Bystander, CallKind, Parameter, Role, Settings
from sleuth.core.reading.course import courses_of
from sleuth.core.reading.lines import layer_of, optimiser_line
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Connection

HALF = ("float16", "bfloat16")


@check(
    code="M220",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Architecture, Settings),
    explains=(
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "loss-not-decreasing",
        "weights-do-not-change",
        "update-too-small",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "learns-without-input",
        "loss-oscillates",
        "underfitting",
        "capacity-too-small",
    ),
    title="The optimiser does not hold some parameters",
    why="""An optimiser updates the very tensors it was given. Parameters that were left out, or that replaced others after it was
    built, get gradients but never change.""",
    fix="Build the optimiser from model.parameters(), after the last layer was added or replaced.",
    decided_by="the identity of the optimiser's tensors against the model's",
    symptoms=(
        "weights do not change",
        "new layer is not in the optimizer",
        "optimizer holds the old parameters",
        "replaced the head after creating the optimizer",
        "some layers do not learn",
    ),
)
def parameters_not_optimised(seen: Seen) -> Iterator[Evidence | NotExamined]:
    parameters = [p for p in seen.one(Architecture).parameters if p.trainable and p.tied_to is None]
    if any(p.optimised is None for p in parameters):
        yield NotExamined("there is no optimiser to ask")
        return
    settings = seen.one(Settings)
    connection = seen.maybe(Connection)
    # Parameters that this loss does not reach belong to another loss, and often to another optimiser.
    idle = set(connection.without_gradient) if connection is not None else set()
    # Whoever is changed from step to step is changed by somebody, be it by hand.
    left_out = [p for p in parameters if not p.optimised and p.path not in idle | _moved(seen)]
    foreign = settings.foreign_parameters
    if not left_out:
        yield from (_forgotten(seen, bystander) for bystander in seen.all(Bystander))
        return
    if foreign >= len(parameters) and settings.parameter_dtype in HALF:
        yield NotExamined("the optimiser holds other tensors, which may be float32 copies of these half-precision parameters")
        return
    yield Evidence(
        where=left_out[0].path,
        location=_place(seen, left_out),
        summary=_summary(left_out, parameters, foreign),
        numbers={"left_out": len(left_out), "parameters": len(parameters), "foreign": foreign},
        # A whole part that is missing may have an optimiser of its own, which was not shown to us.
        confidence=Confidence.LIKELY if _whole_part(left_out, parameters) and not foreign else None,
        strength=float(sum(p.size for p in left_out)),
    )


def _moved(seen: Seen) -> set[str]:
    updates = courses_of(seen.frames(Role.UPDATE))
    return {path for path, course in updates.items() if not course.is_zero.all()}


def _forgotten(seen: Seen, bystander: Bystander) -> Evidence:
    name, number, twin = bystander.name, bystander.optimiser, bystander.twin
    return Evidence(
        where=name,
        location=optimiser_line(seen, number),
        summary=f"the loss before each step of optimiser {number} trains {name}, but this optimiser holds the very parameters "
        f"that optimiser {twin} holds: nobody holds the {bystander.parameters} of {name}, and it never changes",
        fix=f"Give this optimiser {name}.parameters().",
        numbers={"left_out": bystander.parameters, "size": bystander.size},
        confidence=Confidence.LIKELY,
        strength=float(bystander.size),
    )


def _place(seen: Seen, left_out: list[Parameter]) -> Location | None:
    """What was made after the optimiser should have been before it; else the optimiser was given too little."""
    late = [layer for p in left_out if (layer := layer_of(seen, p.path)) is not None and layer.late]
    return late[0].location if late else place_of(seen, CallKind.CHOSEN_PARAMETERS) or optimiser_line(seen)


def _summary(left_out: list[Parameter], parameters: list[Parameter], foreign: int) -> str:
    names = ", ".join(p.path for p in left_out[:2]) + (f" and {len(left_out) - 2} more" if len(left_out) > 2 else "")
    text = f"the optimiser does not hold {len(left_out)} of {len(parameters)} trainable parameters: {names}"
    if foreign:
        return f"{text}; instead it holds {foreign} tensors that are no longer part of the model"
    if (part := _whole_part(left_out, parameters)) is not None:
        return f"{text}: all of {part}. Unless another optimiser trains it, it never changes"
    return text


def _whole_part(left_out: list[Parameter], parameters: list[Parameter]) -> str | None:
    """The top-level part that is missing as a whole, where it is exactly one."""
    tops = {p.path.split(".")[0] for p in left_out}
    if len(tops) != 1 or len(left_out) == len(parameters):
        return None
    top = tops.pop()
    return top if sum(p.path.split(".")[0] == top for p in parameters) == len(left_out) else None
