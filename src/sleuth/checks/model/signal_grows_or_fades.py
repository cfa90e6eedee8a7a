"""Activations grow or shrink from layer to layer."""

from collections.abc import Iterator
from itertools import pairwise

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.history import Tensor
from sleuth.core.observation import Architecture, Role
from sleuth.core.stage import Severity, Stage

# Ten blocks that each double the variance, as unnormalised residual blocks may, stay a hundredfold below.
GROWN = 1e3
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
    ),
    title="The signal grows or fades from layer to layer",
    why="""Each layer multiplies the scale of what passes through it. Factors that are all above or all below one compound
    with depth: the last layers see numbers that are huge or hardly differ, and gradients do the same on their way back.""",
    fix="""Initialise with a gain that fits the activation (nn.init.kaiming_normal_(w, nonlinearity="relu")), or put a
    normalisation layer between the blocks.""",
)
def signal_grows_or_fades(
    seen: Seen, *, grown: float = GROWN, least_layers: int = LEAST_LAYERS
) -> Iterator[Evidence | NotExamined]:
    families = {layer.path: layer.family for layer in seen.one(Architecture).layers}
    tensors = [t for t in seen.first(Role.ACTIVATION) if t.statistics.finite]
    runs = _runs(tensors, families)
    long = [run for run in runs if len(run) >= least_layers]
    if not any(families.get(t.path) in ("linear", "conv") for t in tensors):
        yield NotExamined("no layer with weights was seen at work")
    for run in long:
        ratio = run[-1].rms / run[0].rms
        steps = [b.rms > a.rms for a, b in pairwise(run)]
        up = sum(steps) / len(steps)
        if (ratio > grown and up >= SAME_WAY) or (ratio < 1 / grown and 1 - up >= SAME_WAY):
            word = "grows" if ratio > 1 else "fades"
            yield Evidence(
                where=run[-1].path,
                summary=f"the signal {word} from {run[0].rms:.2g} at {run[0].path} to {run[-1].rms:.2g} at {run[-1].path}, "
                f"{len(run)} layers later: {max(ratio, 1 / ratio) ** (1 / len(steps)):.2g}-fold a layer",
                numbers={"first": run[0].rms, "last": run[-1].rms, "ratio": ratio, "layers": len(run)},
                series=(Series("size by depth", tuple(map(float, range(len(run)))), tuple(t.rms for t in run)),),
                strength=max(ratio, 1 / ratio) / grown,
            )


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
