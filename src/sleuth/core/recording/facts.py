"""The plain facts of an examination, from what was observed: what a report shows beside its verdict."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sleuth.core.history import History, Seen
from sleuth.core.observation import Architecture, ArrayFacts, Evaluation, LossCall, Parameter, Settings, Split, Step
from sleuth.core.trial import InitialLoss, Overfit, RangeTest

# A reader takes in about this many labels or inputs at a glance; JSON keeps the counts of all others.
MOST_LISTED = 12
# A table that can still be scrolled through.
MOST_LAYERS = 500


def facts_of(history: History) -> dict[str, Any]:
    """Only what was seen: a fact that is not there was not observed."""
    seen = Seen(history)
    parts = (_data(seen), _settings(seen), _architecture(seen), _start(seen), _one_batch(seen), _training(seen), _rate(seen))
    return {key: value for part in parts for key, value in part.items() if value is not None}


def _data(seen: Seen) -> dict[str, Any]:
    train = seen.batches(Split.TRAIN)
    if not train:
        return {}
    first = train[0]
    labels = seen.labels(Split.TRAIN)
    return {
        "inputs": [_array(facts) for facts in first.inputs[:MOST_LISTED]],
        "target": None if first.target is None else _array(first.target),
        "labels": {str(k): labels[k] for k in sorted(labels)[:MOST_LISTED]} or None,
        "classes": {"count": len(labels), "rarest": min(labels.values()), "commonest": max(labels.values())} if labels else None,
    }


def _array(facts: ArrayFacts) -> dict[str, Any]:
    measured = facts.statistics
    values = {"min": measured.min, "max": measured.max, "mean": measured.mean, "std": measured.std}
    return {
        "path": facts.path,
        "shape": list(facts.shape),
        "dtype": facts.dtype,
        **{key: _finite(value) if measured.finite else None for key, value in values.items()},
    }


def _settings(seen: Seen) -> dict[str, Any]:
    settings = seen.maybe(Settings)
    if settings is None:
        return {}
    return {
        "versions": dict(settings.versions) or None,
        "loss": settings.loss,
        "optimiser": settings.optimiser,
        "lr": _finite(settings.lr),
        "optimiser_options": {str(k): v for k, v in settings.optimiser_options.items()} or None,
        "machine": dict(settings.machine) or None,
    }


def _architecture(seen: Seen) -> dict[str, Any]:
    architecture = seen.maybe(Architecture)
    if architecture is None:
        return {}
    held: dict[str, list[Parameter]] = defaultdict(list)
    for parameter in architecture.parameters:
        held[parameter.layer].append(parameter)
    layers = [
        {
            "path": layer.path,
            "kind": layer.kind,
            "shapes": [list(p.shape) for p in held[layer.path]],
            "parameters": sum(p.size for p in held[layer.path]),
            "trainable": sum(p.size for p in held[layer.path] if p.trainable),
        }
        for layer in architecture.layers[:MOST_LAYERS]
    ]
    return {"architecture": {"count": len(architecture.layers), "layers": layers}}


def _start(seen: Seen) -> dict[str, Any]:
    start = seen.maybe(InitialLoss)
    if start is not None:
        return {"initial_loss": {"measured": _finite(start.measured), "expected": _finite(start.expected), "how": start.how}}
    calls = seen.all(LossCall)
    value = _finite(calls[0].value) if calls else None
    return {} if value is None else {"initial_loss": {"measured": value, "expected": None, "how": ""}}


def _one_batch(seen: Seen) -> dict[str, Any]:
    trial = seen.maybe(Overfit)
    if trial is None:
        return {}
    return {
        "one_batch": {
            "samples": trial.samples,
            "steps": trial.steps,
            "floor": _finite(trial.floor),
            **_course(trial.losses),
            "tuned_lr": _finite(trial.tuned_lr),
            "tuned_last": _course(trial.tuned_losses)["last"],
        }
    }


def _training(seen: Seen) -> dict[str, Any]:
    steps = seen.all(Step)
    if not steps:
        return {}
    norms = [n for s in steps if (n := _finite(s.gradient_norm)) is not None]
    evaluations = [e for e in seen.all(Evaluation) if e.split is Split.VALIDATION]
    return {
        "training": {
            "steps": seen.count(Step),
            **_course([s.loss for s in steps if s.heard]),
            "gradient_norm": [min(norms), max(norms)] if norms else None,
            "validation": _numbers(evaluations[-1].metrics) if evaluations else None,
        }
    }


def _rate(seen: Seen) -> dict[str, Any]:
    trial = seen.maybe(RangeTest)
    return {} if trial is None else {"suggested_lr": _finite(trial.suggested)}


def _course(losses: Iterable[float | None]) -> dict[str, float | None]:
    losses = list(losses)
    return {"first": _finite(losses[0]) if losses else None, "last": _finite(losses[-1]) if losses else None}


def _numbers(metrics: Mapping[str, float]) -> dict[str, float | None]:
    return {str(name): _finite(value) for name, value in metrics.items()}


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
