"""How low a loss can get on a batch, and how low with one and the same answer for every sample."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.core.contract.adapter import Substitutes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import LossCall
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab

# Sums in float32: a loss that differs from its only part by more holds something else besides.
ROUNDING = 1e-4
CLASSES = ("cross-entropy", "nll")
BINARY = ("bce", "bce-logits")
REGRESSION = ("mse", "l1", "huber")
# Sums grow with the batch; these are the same for every size of it.
AVERAGED = ("mean", "none", None)
# How sure a right answer is of itself. A loss that smooths its labels is lowest in between, and rises again.
SURENESS = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 25.0)
# Of guessing: what the surest right answer costs where labels are hard is rounding.
SMOOTHED = 0.02
# Zero is the floor of these whatever the targets are.
FROM_ZERO = ("nll", "kl", "hinge", *REGRESSION)


@dataclass(frozen=True)
class Floor:
    """`value` is None where nobody can say. `plain`: the loss compares outputs with targets and has to fall."""

    value: float | None
    reason: str
    constant: float | None = None  # the best loss of one and the same answer for all samples
    plain: bool = False


def floor_of(lab: Lab, batch: Parts, distinct: bool) -> Floor:
    """From what the losses are given when the batch is run once."""
    lab.bench.set_training(True)
    calls = [o for o in lab.bench.observe(batch, 0) if isinstance(o, LossCall)]
    known = bool(calls) and all(call.family != "other" for call in calls)
    plain = known and (len(calls) == 1 or lab.subject.step is None)
    if not known:
        return Floor(None, "how low this loss can get is not known")
    if not _is_sum(calls):
        return Floor(None, "the loss holds more than its parts that are known", plain=plain)
    if not distinct:
        return Floor(None, "samples with equal inputs may have different targets", plain=plain)
    target = _only_array(lab, batch.target)
    parts = [_floor(call, target) for call in calls]
    if any(part is None for part in parts):
        return Floor(None, "how low a weighted loss with soft targets can get is not known", plain=plain)
    value = sum(part for part in parts if part is not None)
    if value == 0 and len(calls) == 1 and calls[0].family in CLASSES:
        value = _asked(lab, batch, target)
    repeats = _repeats(lab, batch) if calls[0].family in CLASSES else 0.0
    constant = _constant(calls[0], target) if len(calls) == 1 else None
    return Floor(value + repeats, _words(value, repeats), constant, plain)


def _asked(lab: Lab, batch: Parts, labels: np.ndarray | None) -> float:
    """What the right answers cost: more than nothing where the loss smooths the labels that it was given, by itself."""
    if not isinstance(lab.adapter, Substitutes) or labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu":
        return 0.0
    adapter = lab.adapter

    def sure_of(scores: np.ndarray, sure: float) -> np.ndarray:
        if scores.ndim != 2 or len(scores) != len(labels) or labels.min() < 0 or labels.max() >= scores.shape[1]:
            return scores
        right = np.zeros(scores.shape)
        right[np.arange(len(labels)), labels] = sure
        # In the terms of the model, whose answers may be logarithms of probabilities already.
        return right - np.log(np.exp(right).sum(1, keepdims=True)) if _are_logarithms(scores) else right

    def cost(sure: float) -> float:
        def change(output: object) -> object:
            return map_arrays(output, lambda a: adapter.like(sure_of(adapter.values(a), sure), a), adapter.is_array)

        return adapter.loss_with(lab.bench, batch, change)

    try:
        guessing, lowest = cost(0.0), min(cost(sure) for sure in SURENESS)
    except Unsupported:
        return 0.0
    return lowest if SMOOTHED * guessing < lowest < guessing else 0.0


def _are_logarithms(scores: np.ndarray) -> bool:
    """Of probabilities: of numbers above zero there is no need to ask."""
    return bool(np.all(scores <= 0) and np.allclose(np.exp(scores).sum(1), 1, atol=1e-3))


def _words(soft: float, repeats: float) -> str:
    if repeats > 0:
        return f"the same beginnings go on differently, which costs {repeats:.3g}"
    return f"the entropy of the targets is {soft:.3g}" if soft > 0 else "zero"


def _is_sum(calls: Sequence[LossCall]) -> bool:
    total, parts = calls[0].value, [call.returned for call in calls]
    if total is None or any(part is None for part in parts):
        return False
    return abs(total - sum(part for part in parts if part is not None)) <= ROUNDING * max(abs(total), 1e-6)


def _only_array(lab: Lab, tree: object) -> np.ndarray | None:
    arrays = [lab.adapter.values(a) for _, a in leaves(tree, lab.adapter.is_array)]
    return arrays[0] if len(arrays) == 1 else None


def _floor(call: LossCall, target: np.ndarray | None) -> float | None:
    """None when it cannot be told."""
    facts = call.argument("target")
    weighted = bool(call.options.get("has_weight") or call.options.get("has_pos_weight"))
    if call.family in FROM_ZERO:
        return 0.0
    if facts is None:
        return None
    if call.family in BINARY:
        return _binary_floor(facts.facts.whole_share == 1, weighted, target, facts.facts.shape, call)
    smoothing = float(call.options.get("label_smoothing", 0.0))
    output = call.argument("output")
    classes = output.facts.shape[1 if len(output.facts.shape) > 1 else 0] if output else 0
    if not facts.facts.is_float:
        if smoothing == 0:
            return 0.0
        if weighted or classes < 2 or call.reduction not in AVERAGED:
            return None
        return float(_entropy(np.eye(1, classes) * (1 - smoothing) + smoothing / classes, axis=1).mean())
    if weighted or target is None or target.shape != facts.facts.shape or call.reduction not in AVERAGED:
        return None
    mixed = target.astype(np.float64) * (1 - smoothing) + smoothing / max(classes, 1)
    return float(_entropy(mixed, axis=1 if mixed.ndim > 1 else 0).mean())


def _binary_floor(hard: bool, weighted: bool, target: np.ndarray | None, shape: tuple[int, ...], call: LossCall) -> float | None:
    if hard:
        return 0.0
    if weighted or target is None or target.size != int(np.prod(shape)) or call.reduction not in AVERAGED:
        return None
    shares = np.clip(target.astype(np.float64), 0, 1)
    return float(_entropy(np.stack([shares, 1 - shares]), axis=0).mean())


def _entropy(shares: np.ndarray, axis: int) -> np.ndarray:
    return -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=axis)


def _repeats(lab: Lab, batch: Parts) -> float:
    """What a model that reads from left to right cannot know: how a beginning goes on that goes on in several ways."""
    tokens = [lab.adapter.values(a) for _, a in leaves(batch.inputs, lab.adapter.is_array)]
    tokens = [t for t in tokens if t.ndim == 2 and t.dtype.kind in "iu"]
    target = _only_array(lab, batch.target)
    if len(tokens) != 1 or tokens[0].shape[1] < 2:
        return 0.0
    ahead = _surprise(tokens[0][:, :-1], tokens[0][:, 1:])
    if target is None or target.shape != tokens[0].shape or target.dtype.kind not in "iu":
        return ahead if target is None else 0.0
    return max(_surprise(tokens[0], target), ahead if np.array_equal(target, tokens[0]) else 0.0)


def _surprise(tokens: np.ndarray, following: np.ndarray) -> float:
    """Mean entropy of what follows, given everything before it."""
    total = 0.0
    for position in range(tokens.shape[1]):
        _, group = np.unique(tokens[:, : position + 1], axis=0, return_inverse=True)
        for g in np.unique(group):
            _, counts = np.unique(following[group.ravel() == g, position], return_counts=True)
            total += float(counts.sum() * _entropy(counts / counts.sum(), axis=0))
    return total / tokens.size


def _constant(call: LossCall, target: np.ndarray | None) -> float | None:
    """Each place of the output (position, pixel) may have its own answer, but all samples the same."""
    facts = call.argument("target")
    plain = call.reduction in AVERAGED and not call.options.get("has_weight") and not call.options.get("has_pos_weight")
    if target is None or facts is None or not plain or not target.ndim or target.size != int(np.prod(facts.facts.shape)):
        return None
    values = target.reshape(len(target), -1).astype(np.float64)
    if call.family in CLASSES:
        return None if facts.facts.is_float else _label_entropy(values, float(call.options.get("ignore_index", -100)))
    if call.family in BINARY:
        shares = values.mean(axis=0)
        return float(_entropy(np.stack([shares, 1 - shares]), axis=0).mean())
    if call.family == "mse":
        return float(values.var(axis=0).mean())
    if call.family == "l1":
        return float(np.abs(values - np.median(values, axis=0)).mean())
    return None


def _label_entropy(labels: np.ndarray, ignored: float) -> float | None:
    """Mean entropy of the labels at each position, over the samples; None when every label is ignored."""
    total = 0.0
    for column in labels.T:
        _, counts = np.unique(column[column != ignored], return_counts=True)
        total += float(counts.sum() * _entropy(counts / max(counts.sum(), 1), axis=0))
    counted = int(np.count_nonzero(labels != ignored))
    return total / counted if counted else None
