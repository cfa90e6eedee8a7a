"""One number for how good answers are: the share of right classes, or r². For a model's outputs as for simple learners."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Argument, LossCall
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab

# More classes than this leave too few samples for each.
MOST_CLASSES = 100
FEWEST_PER_CLASS = 5
# Wider targets are images, sequences and codes: a narrow model for them may be what is wanted.
MOST_NUMBERS = 8
# With these a higher output means that class; with those the output is the number itself.
CLASSIFIES = ("cross-entropy", "nll", "bce", "bce-logits")
REGRESSES = ("mse", "l1", "huber")
ROUNDING = 1e-3


@dataclass(frozen=True)
class Task:
    """`columns`: what a learner has to predict, one column a class or a number."""

    classes: int  # 0: numbers
    values: np.ndarray  # class of each sample, or (n, k) numbers
    mean: np.ndarray
    spread: np.ndarray

    @property
    def columns(self) -> np.ndarray:
        if self.classes:
            return np.eye(self.classes)[self.values]
        return np.asarray((self.values - self.mean) / self.spread)

    @property
    def chance(self) -> float:
        return float(np.bincount(self.values).max() / len(self.values)) if self.classes else 0.0

    def errors(self, answers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """One a sample: 0 or 1 for classes, squared error over the variance for numbers. `answers` are like `columns`."""
        if self.classes:
            return np.asarray(answers.argmax(axis=1) != values, dtype=np.float64)
        wanted = (values - self.mean) / self.spread
        return np.asarray(np.square(answers - wanted).mean(axis=1))


def task_of(targets: list[np.ndarray]) -> Task:
    """Shares of classes count as the class with the largest."""
    if len(targets) != 1:
        raise Unsupported("the batches do not have one array of targets")
    flat = targets[0].reshape(len(targets[0]), -1)
    binary = flat.shape[1] == 1 and bool(np.isin(flat, (0, 1)).all())
    if flat.shape[1] == 1 and (flat.dtype.kind in "biu" or binary):
        return _classes(flat[:, 0])
    if flat.dtype.kind == "f" and flat.shape[1] > 1 and (flat >= 0).all() and np.allclose(flat.sum(axis=1), 1, atol=1e-3):
        return _classes(flat.argmax(axis=1))
    if flat.dtype.kind != "f" or flat.shape[1] > MOST_NUMBERS or np.isin(flat, (0, 1)).all():
        raise Unsupported("the target is neither one class nor a few numbers a sample")
    spread = flat.std(axis=0)
    if not np.all(np.isfinite(flat)) or not np.all(spread > 0):
        raise Unsupported("the targets do not vary, or are not finite")
    return Task(0, flat.astype(np.float64), flat.mean(axis=0), spread)


def _classes(labels: np.ndarray) -> Task:
    whole = labels.astype(np.int64)
    if whole.min() < 0 or whole.max() >= MOST_CLASSES:
        raise Unsupported("the labels do not count a few classes from zero")
    counts = np.bincount(whole)
    if np.count_nonzero(counts) < 2 or np.median(counts[counts > 0]) < FEWEST_PER_CLASS:
        raise Unsupported(f"{len(whole)} samples are too few for {len(counts)} classes")
    return Task(len(counts), whole, np.zeros(1), np.ones(1))


def refuse_other_losses(lab: Lab, task: Task) -> None:
    """Outputs can be read as answers only where the loss does: not as log rates, margins or quantiles."""
    lab.bench.set_training(False)
    try:
        calls = [o for o in lab.bench.observe(lab.batch, 0) if isinstance(o, LossCall)]
        output = _output(lab, lab.batch.inputs)
    finally:
        lab.bench.set_training(True)
    if len(calls) != 1 or calls[0].family not in (CLASSIFIES if task.classes else REGRESSES):
        raise Unsupported("with this loss, outputs cannot be read as answers")
    target = [lab.adapter.values(a) for _, a in leaves(lab.batch.target, lab.adapter.is_array)]
    given = [(calls[0].argument("output"), output), (calls[0].argument("target"), target[0])]
    if not task.classes and not all(_is(argument, values) for argument, values in given):
        raise Unsupported("the loss is not given outputs and targets as they are")


def _is(argument: Argument | None, values: np.ndarray) -> bool:
    if argument is None or argument.facts.statistics.count != values.size:
        return False
    found, near = argument.facts.statistics, ROUNDING * (float(np.abs(values).max()) + 1e-6)
    return abs(found.min - float(values.min())) < near and abs(found.max - float(values.max())) < near


def outputs_of(lab: Lab, batches: list[Parts], most: int) -> np.ndarray:
    """One row a sample, in evaluation mode; Unsupported where that is not what the model gives."""
    lab.bench.set_training(False)
    try:
        rows = [_output(lab, batch.inputs) for batch in batches]
    finally:
        lab.bench.set_training(True)
    return np.concatenate(rows)[:most]


def _output(lab: Lab, inputs: Any) -> np.ndarray:
    arrays = [lab.adapter.values(a) for _, a in leaves(lab.bench.forward(inputs), lab.adapter.is_array)]
    if len(arrays) != 1 or not arrays[0].ndim:
        raise Unsupported("the model does not give one array")
    return np.asarray(arrays[0].reshape(len(arrays[0]), -1), dtype=np.float64)


def as_answers(task: Task, outputs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The model's outputs in the form of `Task.columns`. `reference`: its outputs for the training samples, by which a single
    score is cut into two classes where that serves best: no loss needs to be known for that."""
    if not task.classes:
        if outputs.shape[1] != task.values.shape[1]:
            raise Unsupported("the outputs do not have the shape of the targets")
        return np.asarray((outputs - task.mean) / task.spread)
    if outputs.shape[1] >= task.classes > 1 and outputs.shape[1] > 1:
        return outputs
    if outputs.shape[1] != 1 or task.classes != 2:
        raise Unsupported("the outputs are not one score a class")
    cut = _best_cut(reference[:, 0], task.values)
    return np.stack([cut - outputs[:, 0], outputs[:, 0] - cut], axis=1)


def _best_cut(scores: np.ndarray, labels: np.ndarray) -> float:
    order = np.argsort(scores, kind="stable")
    right = np.cumsum(labels[order] == 0) + (labels == 1).sum() - np.cumsum(labels[order] == 1)
    best = int(np.argmax(right))
    above = scores[order][min(best + 1, len(scores) - 1)]
    return float((scores[order][best] + above) / 2)
