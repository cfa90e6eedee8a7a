"""The gradient of a well-known loss by its output, in closed form; believed only where differences of the loss agree with it."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Of the slope along a random direction, in float64.
AGREES = 1e-5
DIRECTIONS = 2
NUDGE = 1e-6


@np.errstate(all="ignore")
def closed_form(ask: Callable[[np.ndarray], float], output: np.ndarray, target: Any) -> np.ndarray | None:
    if not isinstance(target, np.ndarray) or not output.size:
        return None
    point = output.astype(np.float64)
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=point.shape) for _ in range(DIRECTIONS)]
    slopes = [(ask(point + NUDGE * d) - ask(point - NUDGE * d)) / (2 * NUDGE) for d in directions]
    scale = max(map(abs, slopes))
    for candidate in _candidates(point, target):
        told = [float(np.vdot(candidate, d)) for d in directions]
        if np.isfinite(told).all() and scale > 0 and np.allclose(told, slopes, rtol=0, atol=AGREES * scale):
            return candidate.astype(output.dtype)
    return None


def _candidates(output: np.ndarray, target: np.ndarray) -> Iterator[np.ndarray]:
    wanted = _wanted(output, target)
    if wanted is None:
        return
    rows = len(output)
    if output.ndim > 1:
        scores = np.exp(output - output.max(-1, keepdims=True))
        shares = scores / scores.sum(-1, keepdims=True)
        yield (shares - wanted) / rows
        yield -wanted / output / rows
        yield -wanted / rows
    odds = 1 / (1 + np.exp(-output))
    for size in {output.size, rows}:
        for factor in (2.0, 1.0):
            yield factor * (output - wanted) / size
        yield (odds - wanted) / size
        yield (output - wanted) / (output * (1 - output)) / size


def _wanted(output: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    if target.shape == output.shape:
        return target.astype(np.float64)
    if output.ndim == 2 and target.size == len(output) and target.dtype.kind in "iu":
        classes = target.reshape(-1)
        if classes.min() >= 0 and classes.max() < output.shape[1]:
            return np.eye(output.shape[1])[classes]
    return target.reshape(output.shape).astype(np.float64) if target.size == output.size else None
