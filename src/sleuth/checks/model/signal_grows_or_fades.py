"""Activations grow or shrink from layer to layer."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.history import Tensor
from sleuth.core.observation import Architecture, Role
from sleuth.core.stage import Severity, Stage

# Ten blocks that each double the variance, as unnormalised residual blocks may, stay a hundredfold below.
GROWN = 1e3
# A tenth of that is too much already where it arrives at the model's answer as numbers that a softmax takes for certainty:
# ten doubling blocks make thirty out of one.
GROWN_LOUD = 1e2
LOUD = 30.0
# With fewer layers one odd layer looks like a trend.
LEAST_LAYERS = 4
# Growth layer by layer, not one jump: this share of the steps goes the same way.
SAME_WAY = 0.75
RESETTING = ("norm", "batchnorm", "recurrent")


@check(
    code="M213",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=(Role.ACTIVATION, Architecture),
    explains=(
        "initial-loss-off",
        "vanishing-gradients",
        "exploding-gradients",
        "saturated-units",
        "collapsed-output",
        "output-not-finite",
        "loss-not-finite",
        "cannot-overfit-one-batch",
        "learns-without-input",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "update-too-small",
        "update-too-large",
        "capacity-too-small",
    ),
    title="The signal grows or fades from layer to layer",
    why="""Each layer multiplies the scale of what passes through it. Factors that are all above or all below one compound
    with depth: the last layers see numbers that are huge or hardly differ, and gradients do the same on their way back.""",
    fix="""Initialise with a gain that fits the activation (nn.init.kaiming_normal_(w, nonlinearity="relu")), or put a
    normalisation layer between the blocks.""",
    decided_by="the size of the signal from layer to layer",
    symptoms=(
        "activations explode with depth",
        "activations vanish in deep layers",
        "outputs are tiny in a deep network",
        "deep network does not train",
    ),
)
def signal_grows_or_fades(
    seen: Seen, *, grown: float = GROWN, least_layers: int = LEAST_LAYERS
) -> Iterator[Evidence | NotExamined]:
    families = {layer.path: layer.family for layer in seen.one(Architecture).layers}
    tensors = [t for t in seen.first(Role.ACTIVATION) if t.statistics.finite]
    runs = _runs(tensors, families)
    if not any(families.get(t.path) in ("linear", "conv") for t in tensors):
        yield NotExamined("no layer with weights was seen at work")
    for run in runs:
        long = (series for series in _series(run) if len(series) >= least_layers)
        found = next((series for series in long if _compounds(series, grown, ends=run is runs[-1])), None)
        if found is not None:
            yield _evidence(found, grown)


def _compounds(series: list[Tensor], grown: float, ends: bool) -> bool:
    """`ends`: nothing behind it takes the growth back."""
    ratio = series[-1].rms / series[0].rms
    steps = [b.rms > a.rms for a, b in pairwise(series)]
    up = sum(steps) / len(steps)
    loud = ends and ratio > min(grown, GROWN_LOUD) and series[-1].rms > LOUD
    return ((ratio > grown or loud) and up >= SAME_WAY) or (ratio < 1 / grown and 1 - up >= SAME_WAY)


def _evidence(series: list[Tensor], grown: float) -> Evidence:
    first, last = series[0], series[-1]
    ratio = last.rms / first.rms
    factor = max(ratio, 1 / ratio) ** (1 / (len(series) - 1))
    return Evidence(
        where=last.path,
        summary=f"the signal {'grows' if ratio > 1 else 'fades'} from {first.rms:.2g} at {first.path} to {last.rms:.2g} at "
        f"{last.path}, {len(series)} layers later: {factor:.2g}-fold a layer",
        numbers={"first": first.rms, "last": last.rms, "ratio": ratio, "layers": len(series)},
        series=(Series("size by depth", tuple(map(float, range(len(series)))), tuple(t.rms for t in series)),),
        strength=max(ratio, 1 / ratio) / grown,
    )


def _series(run: list[Tensor]) -> Iterator[list[Tensor]]:
    """All layers in a row, and layers with the same place in each block: gates and branches beside the main way keep a size of
    their own, and would hide what the others do."""
    yield run
    for alike in (_every_number, _one_number):
        groups: dict[str, list[Tensor]] = defaultdict(list)
        for tensor in run:
            for place in alike(tensor.path):
                groups[place].append(tensor)
        if len(groups) > 1:
            yield from groups.values()


def _every_number(path: str) -> Iterator[str]:
    yield re.sub(r"\d+", "*", path)


def _one_number(path: str) -> Iterator[str]:
    """`blocks.3.f.0` stands in each of the blocks, and in the `f` of one of them beside others."""
    for number in re.finditer(r"\d+", path):
        yield f"{path[: number.start()]}*{path[number.end() :]}"


def _runs(tensors: list[Tensor], families: dict[str, str]) -> list[list[Tensor]]:
    """Outputs of weighted layers between two normalisations; the last of all is the model's own answer and may be of any size."""
    runs: list[list[Tensor]] = [[]]
    weighted = [t for t in tensors if families.get(t.path) in ("linear", "conv")]
    for tensor in tensors:
        if families.get(tensor.path) in RESETTING:
            runs.append([])
        elif tensor in weighted[:-1] and tensor.rms > 0:  # exact zeros are dead-units' business
            runs[-1].append(tensor)
    return runs
