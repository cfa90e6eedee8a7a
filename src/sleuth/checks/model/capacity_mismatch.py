"""Far too few or far too many parameters for the data."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import LossCall
from sleuth.core.reading.flow import LINEAR, users
from sleuth.core.reading.wiring import CLASSIFIES, class_axis
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Capacity, Flow

# ResNet-50 has 20 for each image of ImageNet and would have this many for 25,000 images: few would train it from scratch there.
TOO_MANY = 1_000
# What a chain of single operations may hold on its way from one layer to the next.
PLAIN = (*LINEAR, "activation", "norm", "softmax", "pool")
LEARNED = ("linear", "conv", "recurrent", "embedding")


@check(
    code="M230",
    stage=Stage.MODEL,
    severity=Severity.HINT,
    reads=(Capacity,),
    explains=("capacity-too-small", "overfitting", "underfitting", "cannot-overfit-one-batch"),
    title="The model's size does not fit the data",
    why="""With thousands of fresh parameters for every label, a model learns its few samples by heart in many ways, and nothing
    in the data says which of them holds for others. With a layer narrower than the classes need, it cannot tell them apart.""",
    fix="Take a model with far fewer parameters, start from pretrained weights and freeze most of them, or collect more data.",
    decided_by="the number of parameters against the number of samples",
    symptoms=(
        "model too big for the data",
        "how many parameters do I need",
        "too few parameters",
        "more parameters than samples",
    ),
)
def capacity_mismatch(seen: Seen, *, too_many: float = TOO_MANY) -> Iterator[Evidence | NotExamined]:
    found = seen.one(Capacity)
    yield from _too_narrow(seen, found)
    if found.samples is None or not found.values:
        yield NotExamined("the length of the training set is not known")
        return
    ratio = found.trainable / found.values
    if ratio > too_many and not found.trained:
        yield Evidence(
            summary=f"{found.trainable:,} fresh parameters learn from {found.values:,} target numbers in {found.samples:,} "
            f"samples: {ratio:,.0f} for each",
            numbers={"parameters": found.trainable, "samples": found.samples, "values": found.values},
            strength=ratio / too_many,
        )


def _too_narrow(seen: Seen, found: Capacity) -> Iterator[Evidence]:
    """Units that are on or off tell 2^n classes apart; fewer than that is a door that not all of them fit through."""
    flow, classes = seen.maybe(Flow), _classes(seen)
    if flow is None or classes is None:
        return
    for layer, width in _necks(flow):
        if width < math.log2(classes) and width < found.input_numbers:
            yield Evidence(
                where=layer,
                summary=f"everything that tells {classes} classes apart has to pass through the {width} "
                f"{'number' if width == 1 else 'numbers'} that {layer} is given",
                fix=f"Make the layer before {layer} wider: at least {2 * classes} units.",
                numbers={"width": width, "classes": classes, "parameters": found.trainable},
                strength=math.log2(classes) / width,
            )


def _classes(seen: Seen) -> int | None:
    calls = [call for call in seen.all(LossCall) if not call.failed]
    outputs = [call.argument("output") for call in calls if call.family in CLASSIFIES]
    if len(outputs) != len(calls) or not outputs or outputs[0] is None:
        return None
    shape = outputs[0].facts.shape
    return shape[class_axis(outputs[0])] if shape else None


def _necks(flow: Flow) -> Iterator[tuple[str, int]]:
    """Linear layers that all of the output comes through, with what they take; those fed by something learned only."""
    if len(flow.outputs) != 1:
        return
    used, at = users(flow), flow.outputs[0]
    waiting: tuple[str, int] | None = None
    while True:
        operation = flow.operations[at]
        if operation.family in LEARNED and operation.parameters and waiting is not None:
            yield waiting
            waiting = None
        if operation.family == "linear" and isinstance(operation.settings.get("in"), int):
            waiting = (operation.layer or operation.name, operation.settings["in"])
        elif operation.family not in PLAIN and operation.family != "conv":
            return
        if len(operation.sources) != 1 or (at != flow.outputs[0] and len(used[at]) > 1):
            return
        at = operation.sources[0]
