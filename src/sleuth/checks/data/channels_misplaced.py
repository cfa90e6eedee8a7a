"""Images come with their channels last where the model expects them first, or the reverse."""

import re
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Batch, Failure, Layer, Split
from sleuth.core.stage import Confidence, Severity, Stage

# Grey, grey with alpha, colour, colour with alpha.
CHANNELS = (1, 2, 3, 4)
# As everybody writes it where channels stand last.
LAST = "x.transpose(0, 2, 3, 1)"

Shape = tuple[int, ...]


@check(
    code="D121",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Architecture, Batch),
    explains=("forward-fails", "cannot-overfit-one-batch", "loss-not-decreasing", "underfitting", "capacity-too-small"),
    title="Image channels stand on the wrong axis",
    why="""A convolution mixes channels and slides over height and width. With the axes swapped it slides over
    colours and mixes rows: it either stops with a shape error or learns from scrambled pictures.""",
    fix="""Move the axis: x.permute(0, 3, 1, 2) turns NHWC into NCHW.""",
    decided_by="the batch's shape against the channels of the first convolution",
    symptoms=(
        "expected input to have 3 channels, but got 224 channels instead",
        "NHWC instead of NCHW",
        "channels last",
        "convolution gets height as channels",
    ),
)
def channels_misplaced(seen: Seen) -> Iterator[Evidence | NotExamined]:
    convolutions = [layer for layer in seen.one(Architecture).layers if layer.family == "conv" and "in" in layer.settings]
    shapes = [f.shape for b in seen.batches(Split.TRAIN)[:1] for f in b.inputs if len(f.shape) == 4]
    if not convolutions and not shapes:
        return  # there are neither images nor convolutions
    if not convolutions or not shapes:
        yield NotExamined("no images are fed to a convolution")
        return
    failure = next((f for f in seen.all(Failure) if f.phase == "forward"), None)
    failing = next((c for c in convolutions if failure is not None and c.path == failure.layer), None)
    if failure is not None and failing is not None and (given := _given(failure)) is not None:
        yield from _turned(failing, shapes[0], given, failure)
    elif failing is not None or (failure is not None and failure.layer is None):
        yield from _as_they_come(failing or convolutions[0], shapes[0])
    else:
        # What fails behind the convolutions has come through them.
        yield from _rows_as_channels(convolutions[0], shapes[0])


def _turned(convolution: Layer, shape: Shape, given: Shape, failure: Failure) -> Iterator[Evidence]:
    """The layer that fails was given the images of the batch, as they are or with their axes in another order."""
    wants, here = int(convolution.settings["in"]), _axis(convolution)
    if sorted(given[1:]) != sorted(shape[1:]) or given[here] == wants or not _is_misplaced(wants, given, here):
        return
    if given[1:] == shape[1:]:
        yield from _as_they_come(convolution, shape)
        return
    yield Evidence(
        where=convolution.path,
        location=failure.location,
        summary=f"batches are {_shown(shape)}, but the model turns them and hands {convolution.path} {_shown(given)}: "
        f"it wants {wants} channels on axis {here} and finds {given[here]}",
        fix=_way_back(shape, wants, here),
        confidence=Confidence.CERTAIN,
        numbers={"expected_channels": wants, "axis_1": given[1], "axis_3": given[3]},
    )


def _as_they_come(convolution: Layer, shape: Shape) -> Iterator[Evidence]:
    wants, here = int(convolution.settings["in"]), _axis(convolution)
    if shape[here] == wants or shape[_other(here)] != wants or not _is_misplaced(wants, shape, here):
        return
    yield _evidence(convolution, shape, f"it finds {shape[here]} channels", Confidence.CERTAIN)


def _rows_as_channels(convolution: Layer, shape: Shape) -> Iterator[Evidence]:
    """A square with a few channels at the end where the layer does not look for them, and as many rows as it takes channels."""
    wants, here = int(convolution.settings["in"]), _axis(convolution)
    if shape[here] == wants == shape[2] and wants > max(CHANNELS) and shape[_other(here)] in CHANNELS:
        yield _evidence(convolution, shape, f"the {wants} rows of the image are taken for channels", Confidence.LIKELY)


def _axis(convolution: Layer) -> int:
    """Where it looks for its channels."""
    return 3 if convolution.settings.get("data_format") == "channels_last" else 1


def _other(axis: int) -> int:
    return 4 - axis


def _is_misplaced(wants: int, shape: Shape, here: int) -> bool:
    """The wanted size stands on another axis, and not only because an image happens to be as high as the layer is wide."""
    elsewhere = [size for axis, size in enumerate(shape) if axis not in (0, here)]
    return wants in elsewhere and (wants in CHANNELS or shape[here] not in CHANNELS)


def _given(failure: Failure) -> Shape | None:
    """The shape that the failing layer was given, where it is told and has four axes."""
    found = re.search(r"\((\d+(?:, \d+){3})\)", failure.got or "")
    return tuple(int(size) for size in found[1].split(", ")) if found else None


def _way_back(shape: Shape, wants: int, here: int) -> str:
    if shape[here] == wants:
        place = "first" if here == 1 else "last"
        return f"Take the permute or transpose out of forward: the batches have their channels {place} already."
    if here == 3:
        return f"Turn the batches so that the channels stand last: {LAST}."
    if shape[3] == wants:
        return "Turn the batches, whose channels stand last, with x.permute(0, 3, 1, 2) and nothing else."
    return "Turn the batches so that the channels stand on axis 1: x.permute(0, 2, 1, 3)."


def _evidence(convolution: Layer, shape: Shape, reason: str, confidence: Confidence) -> Evidence:
    wants, here = int(convolution.settings["in"]), _axis(convolution)
    order = "last" if here == 1 else "first"
    return Evidence(
        where=convolution.path,
        summary=f"batches are {_shown(shape)}, channels {order}, but {convolution.path} wants {wants} channels on axis {here}: "
        f"{reason}",
        fix=None if here == 1 else f"Move the axis: {LAST} turns NCHW into NHWC.",
        confidence=confidence,
        numbers={"expected_channels": wants, "axis_1": shape[1], "axis_3": shape[3]},
    )


def _shown(shape: Shape) -> str:
    return "×".join(map(str, shape))
