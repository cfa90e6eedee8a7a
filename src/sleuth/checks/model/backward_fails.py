"""The loss can be computed, its gradient cannot."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Failure, Role
from sleuth.core.stage import Confidence, Severity, Stage


@check(
    code="M232",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Failure, Role.GRADIENT),),
    title="The backward pass raises an exception",
    why="""Backward walks the recorded computation from one number back to the weights. It cannot start when the loss is not one
    number or has no recorded computation, and it cannot go on when a tensor it needs was changed or freed meanwhile.""",
    fix="""Make the loss one number that depends on the weights, write in-place operations (x += y, relu_) as new tensors, and
    detach what is carried from one step to the next.""",
    decided_by="the exception itself, with the operation that made the tensor",
    symptoms=(
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        "Trying to backward through the graph a second time",
        "grad can be implicitly created only for scalar outputs",
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "backward raises an error",
    ),
)
def backward_fails(seen: Seen) -> Iterator[Evidence | NotExamined]:
    failures = [f for f in seen.all(Failure) if f.phase == "backward"]
    if not failures and not seen.frames(Role.GRADIENT):
        yield NotExamined("the backward pass was not reached")
    for failure in failures:
        what = f"backward needs {failure.expected} and finds {failure.got}" if failure.expected else "backward fails"
        advice = failure.advice
        yield Evidence(
            where=failure.layer,
            location=failure.location,
            summary=what if failure.expected else f"{what}. {failure.error}: {failure.message.strip().splitlines()[0]}",
            fix=advice[0].upper() + advice[1:] + "." if advice else None,
            numbers={"expected": failure.expected, "got": failure.got},
        )
