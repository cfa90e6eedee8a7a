"""The model raises an exception before it can learn anything."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Failure, LossCall, Role
from sleuth.core.reading.lines import beside
from sleuth.core.stage import Confidence, Severity, Stage

PHASES = {"data": "reading the data", "forward": "the forward pass", "loss": "the loss", "step": "the optimiser's step",
          "script": "the script"}  # fmt: skip


@check(
    code="M201",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Failure, Role.ACTIVATION, LossCall),),
    title="The forward pass raises an exception",
    why="""A layer was given something it cannot compute with: another shape, dtype or device than it was built for, an id
    without a row, or no tensor at all. Nothing after that line runs, so nothing else about the model can be examined.""",
    fix="""Print the shape and dtype that go into the layer named here and compare them with what the layer was built for.""",
    decided_by="the exception itself, with the layer, what it expected and what it got",
    symptoms=(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
        "Expected all tensors to be on the same device",
        "size mismatch",
        "shape error in forward",
        "the model crashes with an exception",
        "shape is invalid for input of size",
        "given groups=1, weight of size, expected input to have channels",
        "expected input batch_size to match target batch_size",
        "expected 4-dimensional input for 4-dimensional weight",
    ),
)
def forward_fails(seen: Seen) -> Iterator[Evidence | NotExamined]:
    for failure in seen.all(Failure):
        # Backward has a check of its own, and so have shapes that do not fit between output and target.
        if failure.phase not in PHASES or (failure.phase == "loss" and failure.kind == "shape"):
            continue
        yield Evidence(
            where=failure.layer,
            location=failure.location,
            summary=_summary(failure),
            fix=_sentence(failure.advice) if failure.advice else None,
            numbers={"kind": failure.kind, "expected": failure.expected, "got": failure.got},
        )


def _summary(failure: Failure) -> str:
    place = f"{PHASES[failure.phase]} fails" + (f" in layer {failure.layer}" if failure.layer else "")
    place += beside(failure.location, failure.raised)
    first_line = failure.message.strip().splitlines()[0] if failure.message.strip() else failure.error
    if failure.expected and failure.got:
        return f"{place} ({failure.kind}): it takes {failure.expected} and gets {failure.got}. {failure.error}: {first_line}"
    return f"{place}. {failure.error}: {first_line}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")
