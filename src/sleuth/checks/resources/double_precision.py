"""Computing in float64 by accident."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Argument, LossCall, Parameter, Settings
from sleuth.core.stage import Confidence, Severity, Stage

WIDE = "float64"
# Their targets are classes: nothing in them has more than a few digits. Regression may well need sixteen.
OF_CLASSES = ("cross-entropy", "nll", "bce", "bce-logits", "hinge", "ctc")
# What takes the wider dtype of two arrays. Any other op keeps the dtype of its weights: behind it somebody wrote a cast.
PROMOTE = ("mul", "add", "sub", "div", "pow", "where", "maximum", "minimum")


@check(
    code="R604",
    stage=Stage.RESOURCES,
    severity=Severity.HINT,
    reads=(Architecture, Settings, LossCall),
    title="The model computes in float64",
    why="""NumPy makes float64, and one such array is enough to widen what it meets. Double precision takes twice the memory and
    twice the time, on many accelerators thirty times, for digits that training does not need.""",
    fix="""Convert the data where it is made, x = x.astype(np.float32), and take model.double() out.""",
    decided_by="the dtypes of parameters and outputs, against the framework's default dtype and the kind of loss",
    symptoms=(
        "training is slow",
        "model uses twice the memory",
        "tensors are torch.float64",
        "had to call model.double() to make it run",
        "expected Double but found Float",
    ),
)
def double_precision(seen: Seen) -> Iterator[Evidence | NotExamined]:
    settings = seen.one(Settings)
    # Of complex parameters both halves are floats; whole numbers have no precision.
    floats = [p for p in seen.one(Architecture).parameters if p.dtype.startswith(("float", "bfloat"))]
    if not floats:
        yield NotExamined("the model has no floating-point parameters")
    elif settings.default_dtype is None:
        yield NotExamined(f"which dtype {settings.framework} makes new arrays in is not known")
    elif settings.default_dtype == WIDE:
        return  # somebody said so for the whole program
    elif all(p.dtype == WIDE for p in floats):
        yield from _whole_model(seen, floats)
    elif not any(p.dtype == WIDE for p in floats):
        yield from _widened_output(seen, floats)


def _whole_model(seen: Seen, floats: list[Parameter]) -> Iterator[Evidence]:
    """On purpose where it may be needed: in physics, in a regression to many digits."""
    calls = seen.all(LossCall)
    if not calls or not all(call.family in OF_CLASSES for call in calls):
        return
    size = sum(p.size for p in floats)
    yield Evidence(
        summary=f"all {size:,} parameters are float64, though the loss ({calls[0].name}) only tells classes apart: float32 takes "
        "half the memory and about half the time",
        confidence=Confidence.LIKELY,
        numbers={"parameters": size, "dtype": WIDE},
    )


def _widened_output(seen: Seen, floats: list[Parameter]) -> Iterator[Evidence]:
    for call in seen.all(LossCall):
        output = call.argument("output")
        if output is not None and output.facts.dtype == WIDE and _promoted(output):
            yield Evidence(
                summary=f"the loss ({call.name}) is given a float64 output, though all parameters are {floats[0].dtype}: "
                "a float64 constant or array has widened it on its way",
                location=output.producer_location or call.location,
                confidence=Confidence.POSSIBLE,
                fix="Make the array that is multiplied or added float32: torch.as_tensor(scale, dtype=torch.float32).",
                numbers={"dtype": WIDE, "parameters": floats[0].dtype},
            )
            return


def _promoted(output: Argument) -> bool:
    """Operators are written __mul__, __rmul__, mul_ or mul."""
    name = (output.producer or "").strip("_")
    return name in PROMOTE or name.removeprefix("r") in PROMOTE or name.endswith("truediv")
