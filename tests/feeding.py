"""Which checks a training can feed at all: a set without validation data has no overlap to look for.

What is offered is read off the subject itself, never off what a check said. A check that is not named here needs nothing
special: where it was not examined, that counts against the training's share.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from sleuth import Report, Subject
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import take_apart

# Silence by not looking is not health: so much of what can be fed must have been examined.
LEAST = 0.8

NEEDS = {
    "train-val-overlap": {"validation"},
    "train-val-shift": {"validation"},
    "validation-not-deterministic": {"validation"},
    "target-not-finite": {"targets"},
    "target-out-of-range": {"targets"},
    "target-not-scaled": {"targets"},
    "target-leak": {"targets", "table", "one target a sample"},
    "labels-misaligned": {"targets", "one target a sample"},
    "learns-without-input": {"targets"},
    "loss-ignores-target": {"targets"},
    "capacity-too-small": {"targets", "one target a sample"},
    "capacity-too-large": {"targets", "one target a sample"},
    "class-imbalance": {"targets", "classes"},
    "conflicting-labels": {"targets", "classes"},
    "future-leaks": {"targets", "the next element as target"},
    "padding-counts-in-loss": {"targets"},
    "targets-not-shifted": {"targets", "the next element as target"},
    "targets-shifted-twice": {"targets", "the next element as target"},
    "weights-untied": {"an output as wide as a vocabulary"},
    "data-not-shuffled": {"several batches"},
    "same-batch-every-step": {"several batches"},
    "vanishing-gradients": {"depth"},
    "backends-disagree": {"a reference"},
    "checkpoint-incomplete": {"how it is saved"},
    "stopped-too-early": {"the end of a training"},  # examine does not see it
}
# Examine does not see the user's own loop either.
OF_THE_LOOP = {
    "loss-diverges",
    "loss-oscillates",
    "loss-spikes",
    "learning-rate-decayed-away",
    "overfitting",
    "underfitting",
    "validation-too-good",
    "missing-zero-grad",
    "gradients-erased",
    "missing-step",
    "training-in-eval-mode",
    "validating-in-train-mode",
    "validation-builds-graph",
    "scheduler-before-optimiser",
    "accumulation-not-scaled",
    "clipping-misplaced",
    "optimiser-rebuilt",
    "graph-retained",
    "predicts-one-class",
    "units-dying",
    "hidden-state-not-detached",
    "metric-misread",
    "memory-grows",
}
NEEDS |= {name: {"the loop"} for name in OF_THE_LOOP}


def offered(subject: Subject) -> set[str]:
    first = take_apart(next(iter(subject.train)), subject.split)
    inputs, targets = ([_values(a) for _, a in leaves(tree, _is_array)] for tree in (first.inputs, first.target))
    found = {
        "validation": subject.validation is not None,
        "targets": bool(targets),
        "table": len(inputs) == 1 and inputs[0].ndim == 2 and inputs[0].dtype.kind == "f",
        "one target a sample": len(targets) == 1 and targets[0].size == len(targets[0]),
        "classes": len(targets) == 1 and targets[0].size == len(targets[0]) and bool((targets[0] == targets[0].round()).all()),
        "the next element as target": _is_next(inputs, targets),
        "several batches": len(subject.train) > 1,
        "depth": sum(p.ndim > 1 and p.requires_grad for p in subject.model.parameters()) > 2,
    }
    return {name for name, there in found.items() if there}


def feedable(names: Iterable[str], subject: Subject) -> set[str]:
    there = offered(subject)
    return {name for name in names if NEEDS.get(name, set()) <= there}


def share_examined(report: Report, subject: Subject) -> tuple[int, int]:
    """(examined, of so many that can be fed)."""
    fed = feedable(report.stage_of, subject)
    return len(fed - set(report.not_examined)), len(fed)


def _is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray | torch.Tensor)


def _values(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.float().numpy() if array.is_floating_point() else array.numpy()


def _is_next(inputs: list[np.ndarray], targets: list[np.ndarray]) -> bool:
    if len(inputs) != 1 or len(targets) != 1 or inputs[0].shape != targets[0].shape or inputs[0].ndim < 2:
        return False
    return bool(np.array_equal(inputs[0][:, 1:], targets[0][:, :-1]))
