"""An output layer began as a copy of the embedding, and learns apart from it."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.reading.lines import layer_of
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Tying


@check(
    code="M233",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=(Tying,),
    explains=(),
    title="A weight that was tied to the embedding is a copy now",
    why="""The output layer begins with the very numbers of the embedding, but is another parameter: it was copied (clone, .data,
    deepcopy, a loaded checkpoint) where it should have been shared. The two drift apart from the first step, and whatever ties
    them again when a checkpoint is loaded throws one of them away.""",
    fix="""Share the parameter itself, after the last line that makes or loads either:
    model.head.weight = model.embedding.weight.""",
    decided_by="whether a layer begins with the embedding's numbers without being the same parameter",
    symptoms=(
        "weight tying does not work",
        "lm_head and embedding weights are no longer tied",
        "tied weights drift apart",
        "model has more parameters than expected after tying weights",
    ),
)
def weights_untied(seen: Seen) -> Iterator[Evidence | NotExamined]:
    for copy in seen.one(Tying).copies:
        layer = layer_of(seen, copy.path)
        yield Evidence(
            where=copy.path,
            location=None if layer is None else layer.location,
            summary=f"{copy.path} begins with the {copy.size:,} numbers of {copy.embedding}, but is a parameter of its own: each "
            "learns for itself",
            fix=f"Share the parameter itself: model.{copy.path} = model.{copy.embedding}, after the last line that makes, copies "
            "or loads either. If the copy is only meant as a start, allow it there: # sleuth: ignore[weights-untied].",
            numbers={"size": copy.size},
            strength=float(copy.size),
        )
