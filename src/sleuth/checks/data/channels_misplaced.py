"""Images come with their channels last where the model expects them first, or the reverse."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Batch, Failure, Split
from sleuth.core.stage import Confidence, Severity, Stage

# Grey, grey with alpha, colour, colour with alpha.
CHANNELS = (1, 2, 3, 4)


@check(
    code="D121",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Architecture, Batch),
    explains=("forward-fails", "cannot-overfit-one-batch", "loss-not-decreasing", "underfitting"),
    title="Image channels stand on the wrong axis",
    why="""A convolution mixes channels and slides over height and width. With the axes swapped it slides over
    colours and mixes rows: it either stops with a shape error or learns from scrambled pictures.""",
    fix="""Move the axis: x.permute(0, 3, 1, 2) turns NHWC into NCHW.""",
)
def channels_misplaced(seen: Seen) -> Iterator[Evidence | NotExamined]:
    convolution = next((layer for layer in seen.one(Architecture).layers if layer.family == "conv"), None)
    shapes = [f.shape for b in seen.batches(Split.TRAIN)[:1] for f in b.inputs if len(f.shape) == 4]
    if convolution is None or not shapes or "in" not in convolution.settings:
        yield NotExamined("no images are fed to a convolution")
        return
    expected = int(convolution.settings["in"])
    first, height, last = shapes[0][1:]
    fails = any(f.phase == "forward" for f in seen.all(Failure))
    swapped = first != expected and last == expected and fails
    rows_as_channels = first == expected and first == height and first > max(CHANNELS) and last in CHANNELS
    if swapped or rows_as_channels:
        shown = "×".join(map(str, shapes[0]))
        reason = f"the {first} rows of the image are taken for channels" if rows_as_channels else f"it finds {first} channels"
        yield Evidence(
            where=convolution.path,
            summary=f"batches are {shown}, channels last, but {convolution.path} wants {expected} channels on axis 1: {reason}",
            confidence=Confidence.CERTAIN if swapped else Confidence.LIKELY,
            numbers={"expected_channels": expected, "axis_1": first, "axis_3": last},
        )
