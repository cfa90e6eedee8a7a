"""Raw pixels, features of huge scale, or features on scales far apart."""

import math
from collections.abc import Iterator
from dataclasses import replace

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, ArrayFacts, Batch, Failure, Layer, Parameter, Role, Split
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.statistics import Statistics, merge

# The largest rate that plain gradient descent bears falls with the square of the input's size: at twenty it is four hundred
# times smaller than for standardised data, beyond what people try. 0..1, -1..1, standardised and 0..16 lie well below.
HUGE = 20.0
# Below a thousandth the first layer's biases outweigh its inputs.
TINY = 1e-3
# Steps along a feature a thousand times smaller than another are a million times smaller (the catalogue's figure).
APART = 1e3
# A column that is almost always the same, such as a pixel near the border, spans many of its own standard deviations.
RARE_SPAN = 10.0
SPARSE = 0.9
# A first layer this much quieter than its weights and the raw inputs ask for was given scaled inputs.
QUIETER = 0.1
# Gates of a recurrent layer are driven to their ends by inputs that reach it unscaled: its outputs come near one.
DRIVEN = 0.75
USUAL_GAIN = 0.5
PASSING = ("container", "flatten", "dropout", "pool", "other", "activation", "embedding", "loss")
NORMALISING = ("batchnorm", "norm")


@check(
    code="D104",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Batch,),
    explains=(
        "initial-loss-off",
        "signal-grows-or-fades",
        "dead-units",
        "saturated-units",
        "units-dying",
        "exploding-gradients",
        "vanishing-gradients",
        "zero-gradients",
        "collapsed-output",
        "input-ignored",
        "output-not-finite",
        "loss-not-finite",
        "gradient-not-finite",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "learns-without-input",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "update-too-large",
        "update-too-small",
        "predicts-one-class",
        "underfitting",
        "precision-lost",
        "train-eval-disagree",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "capacity-too-small",
    ),
    title="Inputs are not normalised",
    why="""Initialisation and usual learning rates are made for inputs of size one. Larger ones blow up the first layer's outputs
    and its gradient alike; features on different scales need different rates, and the largest decides alone.""",
    fix="""Standardise each feature with the training set's figures, x = (x - x.mean(0)) / (x.std(0) + 1e-8), and reuse those
    figures for validation.""",
    decided_by="mean, spread and range of each input column",
    symptoms=(
        "loss does not decrease",
        "loss is nan",
        "loss is huge at the start",
        "features on very different scales",
        "raw pixels from 0 to 255",
        "accuracy does not improve",
        "cannot find a learning rate that works",
    ),
)
def input_not_normalised(
    seen: Seen, *, huge: float = HUGE, tiny: float = TINY, apart: float = APART
) -> Iterator[Evidence | NotExamined]:
    architecture = seen.maybe(Architecture)
    embeds = architecture is not None and architecture.has("embedding")
    inputs = [x for x in _measurements(seen, embeds) if architecture is None or not _are_rows(x, architecture)]
    if not inputs:
        if not embeds:
            yield NotExamined("the inputs are not numbers to compute with, as far as can be told")
        return
    total = _merged(inputs)
    scale, spread = _scale(inputs[0], total, huge, tiny), _spread(seen, apart)
    if scale is None and spread is None:
        return
    if any(f.phase == "forward" for f in seen.all(Failure)):
        yield NotExamined("the forward pass fails, so whether the model scales its inputs itself cannot be told")
        return
    layers = _in_order(seen)
    if layers and (layers[0].family in NORMALISING or _model_rescales(seen, layers, total)):
        return
    confidence = Confidence.LIKELY if layers else Confidence.POSSIBLE
    if len(layers) > 1 and layers[1].family in NORMALISING and scale is not None and spread is None:
        # What all features have in common, the normalisation after the first layer takes back.
        text = f"{scale.summary}; only the normalisation after {layers[0].path} takes it back"
        yield replace(scale, summary=text, severity=Severity.HINT, confidence=confidence)
    elif (worst := scale or spread) is not None:
        yield replace(worst, confidence=confidence)


def _measurements(seen: Seen, embeds: bool) -> list[ArrayFacts]:
    """Per batch, the input that is computed with: the first of floats or pixels, or whole numbers that stand alone."""
    found = []
    for batch in seen.batches(Split.TRAIN):
        main = next((x for x in batch.inputs if x.is_float or x.dtype == "uint8"), None)
        if main is None and len(batch.inputs) == 1 and batch.inputs[0].dtype != "bool":
            main = batch.inputs[0]
        # Ids are whole numbers in rows; images have more axes.
        if main is not None and not (embeds and main.whole_share == 1 and len(main.shape) <= 2):
            found.append(main)
    return found


def _are_rows(x: ArrayFacts, architecture: Architecture) -> bool:
    """Integers that fit the rows of a table which is no layer's: a model that takes them looks up."""
    if x.is_float or x.dtype == "uint8" or len(x.shape) > 2:
        return False
    tables = (p.shape for p in architecture.parameters if p.family == "other" and len(p.shape) == 2)
    return any(x.statistics.max < rows for rows, _ in tables)


def _merged(inputs: list[ArrayFacts]) -> Statistics:
    total = inputs[0].statistics.to_row()
    for facts in inputs[1:]:
        total = merge(total, facts.statistics.to_row())
    return Statistics.from_row(total)


def _scale(facts: ArrayFacts, total: Statistics, huge: float, tiny: float) -> Evidence | None:
    numbers = {"rms": total.rms, "min": total.min, "max": total.max}
    pixels = facts.whole_share > 0.99 and total.min >= 0 and 128 <= total.max <= 255
    if total.rms > huge:
        what = "raw pixels" if pixels else "values"
        return Evidence(
            where=facts.path,
            summary=f"the inputs are {what} from {total.min:.4g} to {total.max:.4g}, of size {total.rms:.3g} where 1 is usual",
            numbers=numbers,
            fix="Divide by 255 where the data is made: x = x.astype(np.float32) / 255." if pixels else None,
            strength=total.rms / huge,
        )
    filled = total.rms / math.sqrt(1 - total.zero_share) if total.zero_share < 1 else 1.0
    if 0 < filled < tiny:
        return Evidence(
            where=facts.path,
            summary=f"the inputs are of size {filled:.1e} where 1 is usual: the model hardly sees them",
            numbers=numbers,
            strength=tiny / filled,
        )
    return None


def _spread(seen: Seen, apart: float) -> Evidence | None:
    """Columns on scales far apart; constant and rarely filled ones are not counted as small."""
    features = list(enumerate(seen.features(Split.TRAIN)))
    alive = [(i, f) for i, f in features if f.std > 1e-6 * max(abs(f.min), abs(f.max))]
    steady = [(i, f) for i, f in alive if (f.max - f.min) / f.std < RARE_SPAN and f.zero_share < SPARSE]
    if not steady:
        return None
    large, small = max(alive, key=lambda x: x[1].std), min(steady, key=lambda x: x[1].std)
    ratio = large[1].std / small[1].std
    if ratio <= apart:
        return None
    word = next(b.feature_axis for b in seen.batches(Split.TRAIN) if b.features is not None)
    return Evidence(
        where=f"{word} {large[0]}",
        summary=f"{word} {large[0]} varies by {large[1].std:.3g}, {word} {small[0]} by {small[1].std:.3g}: {ratio:.0f} to 1",
        numbers={"ratio": ratio, "largest_std": large[1].std, "smallest_std": small[1].std},
        strength=ratio / apart,
    )


def _in_order(seen: Seen) -> list[Layer]:
    """Layers that compute, in the order they ran; in that of their definition when none was seen running."""
    architecture = seen.maybe(Architecture)
    if architecture is None:
        return []
    by_path = {layer.path: layer for layer in architecture.layers}
    frames = seen.frames(Role.ACTIVATION)
    ran = [by_path[p] for p in frames[0].paths if p in by_path] if frames else list(architecture.layers)
    owners = {p.layer for p in architecture.parameters}
    return [x for x in ran if x.family not in PASSING or (x.family == "other" and x.path in owners)]


def _model_rescales(seen: Seen, layers: list[Layer], total: Statistics) -> bool:
    """Is the first layer's output far smaller than raw inputs would make it? Then the model scales them on the way."""
    frames = seen.frames(Role.ACTIVATION)
    outputs = frames[0].statistics() if frames else {}
    if not layers or layers[0].path not in outputs:
        return False
    out = outputs[layers[0].path]
    if layers[0].family == "recurrent":
        return max(abs(out.min), abs(out.max)) < DRIVEN
    return out.rms < QUIETER * _gain(seen, layers[0]) * total.rms


def _gain(seen: Seen, layer: Layer) -> float:
    """How much a layer with these weights enlarges inputs without structure: their size times the root of the fan-in."""
    architecture = seen.maybe(Architecture)
    weights = {t.path: t.statistics for t in seen.first(Role.WEIGHT)}
    matrices: list[Parameter] = [p for p in architecture.parameters if p.layer == layer.path] if architecture else []
    for matrix in matrices:
        if len(matrix.shape) > 1 and matrix.path in weights and isinstance(layer.settings.get("out"), int):
            return weights[matrix.path].rms * math.sqrt(matrix.size / layer.settings["out"])
    return USUAL_GAIN
