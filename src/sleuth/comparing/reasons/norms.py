"""Norms: their epsilon is measured, from what went in and what came out."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from sleuth.comparing.reasons.formula import Formula, Task


def norms(task: Task) -> Iterator[Formula]:
    if task.x.shape != task.y.shape:
        return
    for name, divided in (("", 0), (" and the variance divided by n - 1", 1)):
        epsilon = _measured(task, divided, centred=True)
        yield Formula("epsilon", f"epsilon {epsilon:.3g}{name}", partial(_layer, epsilon=epsilon, divided=divided))
    outside = _outside(task)
    yield Formula("epsilon", f"epsilon {outside:.3g} outside the root", partial(_layer_outside, epsilon=outside))
    epsilon = _measured(task, 0, centred=False)
    yield Formula("variant", f"rms norm with epsilon {epsilon:.3g}", partial(_rms, epsilon=epsilon))


def norms_with(task: Task, epsilons: tuple[float, ...]) -> Iterator[Formula]:
    """Where the other's output is not there to measure by."""
    if task.x.shape == task.y.shape:
        for epsilon in epsilons:
            yield Formula("epsilon", f"epsilon {epsilon:.3g}", partial(_layer, epsilon=epsilon, divided=0))
            if "mean" in task.weights and "variance" in task.weights:
                yield Formula("epsilon", f"running statistics and epsilon {epsilon:.3g}", partial(_running, epsilon=epsilon))


def batch_norms(task: Task) -> Iterator[Formula]:
    if task.x.shape != task.y.shape:
        return
    if "mean" in task.weights and "variance" in task.weights:
        epsilon = _measured_running(task)
        yield Formula("epsilon", f"running statistics and epsilon {epsilon:.3g}", partial(_running, epsilon=epsilon))
    for name, divided in (("", 0), (" divided by n - 1", 1)):
        measured = _measured_batch(task, divided)
        text = f"the batch's own statistics{name} and epsilon {measured:.3g}"
        yield Formula("mode", text, partial(_batch, epsilon=measured, divided=divided))


def _plain(task: Task) -> np.ndarray:
    """The output before its scale and shift."""
    scale = task.weights.get("scale", np.ones(1))
    return (task.y.astype(np.float64) - task.weights.get("bias", 0.0)) / np.where(scale == 0, np.nan, scale)


def _affine(task: Task, normal: np.ndarray) -> np.ndarray:
    return np.asarray(normal * task.weights.get("scale", 1.0) + task.weights.get("bias", 0.0))


def _middle(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return max(float(np.median(finite)), 0.0) if finite.size else 0.0


def _measured(task: Task, divided: int, *, centred: bool) -> float:
    x, normal = task.x.astype(np.float64), _plain(task)
    with np.errstate(all="ignore"):
        if not centred:
            return _middle(np.square(x).mean(-1) * (1 / np.square(normal).mean(-1) - 1))
        return _middle(x.var(-1) / normal.var(-1) - x.var(-1, ddof=min(divided, x.shape[-1] - 1)))


def _outside(task: Task) -> float:
    x, normal = task.x.astype(np.float64), _plain(task)
    with np.errstate(all="ignore"):
        return _middle(x.std(-1) * (1 / normal.std(-1) - 1))


def _layer(task: Task, epsilon: float, divided: int) -> np.ndarray:
    x = task.x.astype(np.float64)
    variance = x.var(-1, keepdims=True, ddof=min(divided, x.shape[-1] - 1))
    return _affine(task, (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + epsilon))


def _layer_outside(task: Task, epsilon: float) -> np.ndarray:
    x = task.x.astype(np.float64)
    return _affine(task, (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + epsilon))


def _rms(task: Task, epsilon: float) -> np.ndarray:
    x = task.x.astype(np.float64)
    return _affine(task, x / np.sqrt(np.square(x).mean(-1, keepdims=True) + epsilon))


def _measured_running(task: Task) -> float:
    centred, normal = task.x.astype(np.float64) - task.weights["mean"], _plain(task)
    axes = tuple(range(centred.ndim - 1))
    with np.errstate(all="ignore"):
        ratio = (normal * centred).sum(axes) / np.square(centred).sum(axes)
        return _middle(1 / np.square(ratio) - task.weights["variance"])


def _running(task: Task, epsilon: float) -> np.ndarray:
    centred = task.x.astype(np.float64) - task.weights["mean"]
    return _affine(task, centred / np.sqrt(task.weights["variance"] + epsilon))


def _measured_batch(task: Task, divided: int) -> float:
    x, normal = task.x.astype(np.float64), _plain(task)
    axes = tuple(range(x.ndim - 1))
    with np.errstate(all="ignore"):
        return _middle(x.var(axes) / normal.var(axes) - x.var(axes, ddof=divided))


def _batch(task: Task, epsilon: float, divided: int) -> np.ndarray:
    x = task.x.astype(np.float64)
    axes = tuple(range(x.ndim - 1))
    return _affine(task, (x - x.mean(axes)) / np.sqrt(x.var(axes, ddof=divided) + epsilon))
