"""Activations whose variants share a name."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from sleuth.comparing.reasons.formula import Formula, Maker, Task, fitting

# Element by element: some show what all do.
ELEMENTS = 4096
Function = Callable[[np.ndarray], np.ndarray]


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))


FUNCTIONS: dict[str, Function] = {
    "the identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu with erf (exact)": lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))),
    "gelu with tanh (approximate)": lambda x: x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu with a sigmoid (quick)": lambda x: x * sigmoid(1.702 * x),
    "silu": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
    "hard sigmoid x/6 + 1/2": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard sigmoid x/5 + 1/2": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "tanh": np.tanh,
    "relu6": lambda x: np.clip(x, 0, 6),
    "softplus": lambda x: np.logaddexp(0, x),
    "hard swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}


def few(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1)[:ELEMENTS].astype(np.float64)


def activations(task: Task) -> Iterator[Formula]:
    if task.x.shape != task.y.shape:
        return
    for name, function in FUNCTIONS.items():
        yield Formula("variant", name, partial(_on_few, function=function), few, partial(_on_all, function=function))
    x, y = few(task.x), few(task.y)
    below = x < 0
    if below.any():
        slope = float(np.median(y[below] / x[below]))
        yield Formula("slope", f"leaky relu with slope {slope:.4g}", lambda t: _leaky(few(t.x), slope), few)
        alpha = float(np.median(y[below] / np.expm1(x[below])))
        yield Formula("alpha", f"elu with alpha {alpha:.4g}", lambda t: _elu(few(t.x), alpha), few)
    yield from _softmaxes(task)


def applied(maker: Maker, task: Task) -> tuple[str, Formula] | None:
    """Which function of the input does a layer of this kind make its output of, and by which formula?"""
    for name, function in FUNCTIONS.items():
        found = fitting(maker, [replace(task, x=function(task.x.astype(np.float64)))])
        if found is not None:
            return name, found[0]
    return None


def _on_few(task: Task, function: Function) -> np.ndarray:
    return function(few(task.x))


def _on_all(task: Task, function: Function) -> np.ndarray:
    return function(task.x.astype(np.float64))


def _softmax_of(task: Task, axis: int) -> np.ndarray:
    return softmax(task.x, axis)


def _leaky(x: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x < 0, slope * x, x)


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _softmaxes(task: Task) -> Iterator[Formula]:
    for axis in range(task.x.ndim):
        what = "samples" if axis == 0 else "units" if axis == task.x.ndim - 1 else f"axis {axis}"
        yield Formula("axis", f"softmax over the {what}", partial(_softmax_of, axis=axis))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))
