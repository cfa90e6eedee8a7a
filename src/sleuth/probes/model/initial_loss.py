"""The loss of the untrained model against what guessing gives."""

from collections import defaultdict
from collections.abc import Iterator
from math import log

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Argument, LossCall, Observation
from sleuth.core.reading.wiring import class_axis, classifies, is_probabilities, sums_to_one
from sleuth.core.stage import Stage
from sleuth.core.trial import InitialLoss
from sleuth.probes.lab.probe import Lab, probe

# The loss of a fresh model differs little between batches; the mean of a few is enough for a factor of two.
BATCHES = 4

KNOWN = ("cross-entropy", "nll", "bce", "bce-logits", "mse", "l1", "huber", "kl")
Guess = tuple[float, str]  # the loss of guessing, and in words how it comes about


@probe(title="Loss at the start", stage=Stage.MODEL, rank=20, emits=(InitialLoss,), needs=("forward", "loss"), share=0.1)
def initial_loss(lab: Lab) -> Iterator[Observation]:
    calls = _calls(lab)
    reasons: list[str] = []
    results: list[InitialLoss] = []
    for group in calls.values():
        try:
            results.append(_compare(group))
        except Unsupported as error:
            reasons.append(str(error))
    if not results:
        raise Unsupported(reasons[0] if reasons else "no call of a loss was seen")
    yield max(results, key=lambda r: r.measured / r.expected)


def _calls(lab: Lab) -> dict[tuple[str, str, int], list[LossCall]]:
    """Calls of each loss over the batches, in training mode as the first steps will see it.

    In eval mode an untrained batch-norm passes everything through unscaled, and the loss would be another one.
    """
    groups: dict[tuple[str, str, int], list[LossCall]] = defaultdict(list)
    start = lab.bench.snapshot()
    try:
        lab.bench.set_training(True)
        for step, batch in enumerate(lab.train.batches[:BATCHES]):
            seen: dict[tuple[str, str], int] = defaultdict(int)
            for call in lab.bench.observe(batch, step):
                if isinstance(call, LossCall):
                    place = (call.name, str(call.location))
                    groups[*place, seen[place]].append(call)
                    seen[place] += 1
            if lab.time_is_up():
                break
    finally:
        lab.bench.restore(start)
    return groups


def _compare(calls: list[LossCall]) -> InitialLoss:
    guesses = [guess(call) for call in calls]
    losses = [call.value if call.returned is None else call.returned for call in calls]
    measured = [loss for loss in losses if loss is not None]
    if len(measured) < len(calls):
        raise Unsupported("the loss at the start is not a finite number")
    expected = [value for value, _ in guesses]
    if not np.mean(expected) > 0:
        raise Unsupported(f"guessing already gives a loss of zero ({guesses[0][1]})")
    spread = float(np.std(np.subtract(measured, expected)))
    natural = float(np.mean([_natural(call) for call in calls]))
    return InitialLoss(float(np.mean(measured)), float(np.mean(expected)), spread, guesses[0][1], natural)


def _natural(call: LossCall) -> float:
    """Initialisers make answers of about size one, whatever the size of the targets: no fault of the model's."""
    output = call.argument("output")
    if call.family not in ("mse", "l1", "huber") or output is None:
        return 0.0
    return float(output.facts.statistics.count) if call.reduction == "sum" else 1.0


def guess(call: LossCall) -> Guess:
    """Where the exact value would need more than is known, the larger one is taken: only a loss far above is held to be ill."""
    output, target = call.argument("output"), call.argument("target")
    if call.family not in KNOWN and not classifies(call):
        raise Unsupported(f"what guessing gives is not known for {call.name}")
    if call.family == "kl":
        # The truth that a student learns may come from another model.
        target = next((a for a in call.arguments if a.facts.path == "target"), None)
    if output is None or target is None or not output.facts.shape:
        raise Unsupported(f"{call.name} was not given one output and one target")
    match call.family:
        case "cross-entropy" | "nll" | "probabilities":
            value, how = _classes(call, output, target)
            counted = target.facts.statistics.count / (output.facts.shape[1] if target.facts.is_float else 1)
        case "bce" | "bce-logits":
            value, how = _yes_or_no(call, target)
            counted = target.facts.statistics.count
        case "mse" | "l1" | "huber":
            value, how = _distance(call, output, target)
            counted = max(target.facts.statistics.count, output.facts.statistics.count)
        case _:
            return _divergence(call, output, target)
    if call.reduction == "sum":
        return value * counted, f"{how}, summed over {counted:g}"
    return value, how


def _classes(call: LossCall, output: Argument, target: Argument) -> Guess:
    axis = class_axis(output)
    classes = output.facts.shape[axis]
    if target.facts.is_float and not sums_to_one(target, axis):
        raise Unsupported("the soft targets do not sum to 1 over the classes")
    if call.options.get("label_smoothing") and call.options.get("has_weight"):
        raise Unsupported("label smoothing with class weights moves the loss of guessing by an amount that depends on both")
    if classes == output.facts.shape[0] and _counts_up(target):
        raise Unsupported("each sample is its own class (a contrastive loss): its temperature decides where the loss starts")
    # Guessing 1/K costs ln K for every class: priors, smoothing, soft targets and ignored positions leave that as it is.
    factor = _heaviest(call, "weight") if call.reduction in ("sum", "none") else 1.0
    return factor * log(classes), f"ln {classes} for {classes} classes"


def _divergence(call: LossCall, output: Argument, target: Argument) -> Guess:
    """Of the target from 1/K: ln K less its own entropy, so at most ln K."""
    shape = output.facts.shape
    axes = [a for a in range(1, len(shape)) if target.facts.shape == shape and is_probabilities(target, a)]
    if not axes or call.options.get("log_target"):
        raise Unsupported(f"the targets of {call.name} are not probabilities that sum to 1 over the classes")
    classes = shape[axes[0]]
    positions = target.facts.statistics.count / classes
    divisor = {"batchmean": shape[0], "sum": 1}.get(str(call.reduction), target.facts.statistics.count)
    return log(classes) * positions / divisor, f"at most ln {classes} for {classes} classes, reduction {call.reduction}"


def _counts_up(target: Argument) -> bool:
    """0, 1, 2, …: the rows' own numbers."""
    values = target.facts.statistics
    return values.min == 0 and values.max == values.count - 1 and values.mean == (values.count - 1) / 2


def _yes_or_no(call: LossCall, target: Argument) -> Guess:
    positive = max(0.0, min(1.0, target.facts.statistics.mean))
    factor = max(1.0, 1 + (_heaviest(call, "pos_weight") - 1) * positive) * _heaviest(call, "weight")
    return factor * log(2), "ln 2 for yes or no" + (", times the weights" if factor != 1 else "")


def _heaviest(call: LossCall, key: str) -> float:
    found = next((a for a in call.arguments if a.facts.path == key), None)
    return found.facts.statistics.max if found is not None else 1.0


def _distance(call: LossCall, output: Argument, target: Argument) -> Guess:
    """What a model costs that answers nothing: zero, or the middle when a sigmoid stands at its end."""
    values = target.facts.statistics
    middle = 0.5 if output.producer in ("sigmoid", "hardsigmoid") else 0.0
    square = max(values.rms**2, values.variance + (values.mean - middle) ** 2)
    absolute = max(values.abs_sum / max(values.finite, 1), middle)
    if call.family == "mse":
        return square, f"answering {middle:g} to every sample"
    if call.family == "l1":
        return absolute, f"answering {middle:g} to every sample"
    knee = float(call.options.get("beta", call.options.get("delta", 1.0)))
    if knee <= 0:
        return absolute, f"answering {middle:g} to every sample"
    value = min(0.5 * square, knee * absolute)
    return (
        value / knee if "beta" in call.options or call.name == "smooth_l1_loss" else value
    ), f"answering {middle:g} to every sample"
