"""Which loss a function is. Its name may say anything, so its values decide."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Room for an epsilon inside a logarithm; other losses differ far more at the points that are asked.
SAME = 1e-3
POINTS = 2
WIDE = 4.0

Asked = tuple[np.ndarray, np.ndarray]  # an output, and what the loss said to it
Formula = Callable[[np.ndarray, np.ndarray], np.ndarray]


def recognise(
    output: np.ndarray, target: np.ndarray, value: Any, ask: Callable[[np.ndarray], Any] | None = None
) -> tuple[str, str | None]:
    """(family, reduction) of the one known loss that gives the same numbers; ("other", None) when none or several do.

    `value` is what the loss said to this output. Where the loss can be asked at other outputs, `ask` does, and random ones
    decide: at a real output two losses may agree by chance, as cross-entropy and nll do on log-probabilities.
    """
    asked = [(output, np.asarray(value))] if ask is None else _asked(ask, output, 0.05, 0.95)
    found = {fit for family, formula in _formulas(output, target) if (fit := _fit(family, formula, target, asked))}
    if len(found) != 1:
        return "other", None
    family, reduction = found.pop()
    if family == "bce" or ask is None:
        return family, reduction
    # Between zero and one Huber's loss is half the square.
    wide = _asked(ask, output, -WIDE, WIDE)
    return (family, reduction) if _fit(family, {**CLASSES, **ELEMENTS}[family], target, wide) else ("other", None)


def normalises_over_batch(output: np.ndarray, target: np.ndarray, ask: Callable[[np.ndarray], Any]) -> bool:
    """Does a cross-entropy of scores take its softmax over the samples instead of the classes? The largest score that is taken
    off before may be that of each row."""
    if (
        output.ndim != 2
        or min(output.shape) < 2
        or not any(formula is CLASSES["nll"] for _, formula in _formulas(output, target))
    ):
        return False
    asked = _asked(ask, output, -WIDE, WIDE)
    ways: tuple[Formula, ...] = (
        lambda o, t: -_picked(o - _log_sum(o.T)[None, :], t),
        lambda o, t: -_picked((z := o - o.max(1, keepdims=True)) - _log_sum(z.T)[None, :], t),
    )
    return any(_fit("", way, target, asked) for way in ways)


def _asked(ask: Callable[[np.ndarray], Any], output: np.ndarray, low: float, high: float) -> list[Asked]:
    """The loss at random outputs; empty where it refuses them, and then it stays unknown."""
    rng = np.random.default_rng(0)
    points = [rng.uniform(low, high, output.shape).astype(output.dtype) for _ in range(POINTS)]
    try:
        with np.errstate(all="ignore"):
            return [(p, np.asarray(ask(p))) for p in points]
    except Exception:  # whatever the user's loss refuses with
        return []


def _picked(o: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The output of the right class, for class indices or one-hot rows."""
    if t.shape == o.shape:
        return (o * t).sum(-1)
    return np.take_along_axis(o, t.astype(np.int64).reshape(-1, 1), 1)[:, 0]


def _log_sum(o: np.ndarray) -> np.ndarray:
    top = o.max(-1, keepdims=True)
    return (top + np.log(np.exp(o - top).sum(-1, keepdims=True)))[..., 0]


def _huber(o: np.ndarray, t: np.ndarray) -> np.ndarray:
    d = np.abs(o - t)
    return np.where(d < 1, d * d / 2, d - 0.5)


CLASSES: dict[str, Formula] = {
    "cross-entropy": lambda o, t: _log_sum(o) - _picked(o, t),
    "nll": lambda o, t: -_picked(o, t),
}
ELEMENTS: dict[str, Formula] = {
    "mse": lambda o, t: (o - t) ** 2,
    "l1": lambda o, t: np.abs(o - t),
    "huber": _huber,
    "bce": lambda o, t: -(t * np.log(o) + (1 - t) * np.log(1 - o)),
    "bce-logits": lambda o, t: np.logaddexp(0, o) - t * o,
}


def _formulas(output: np.ndarray, target: np.ndarray) -> Iterator[tuple[str, Formula]]:
    classes = output.ndim == 2 and target.dtype.kind in "iu" and target.size == len(output) == len(target)
    if (classes and output.shape[1] > 1) or (target.shape == output.shape and output.ndim == 2 and output.shape[1] > 1):
        yield from CLASSES.items()
    yield from ELEMENTS.items()


def _fit(family: str, formula: Formula, target: np.ndarray, asked: list[Asked]) -> tuple[str, str] | None:
    if not asked or any(value.size != 1 or value.dtype.kind not in "fiu" for _, value in asked):
        return None
    for reduction in ("mean", "sum"):
        reduce = np.mean if reduction == "mean" else np.sum
        try:
            with np.errstate(all="ignore"):
                expected = [float(reduce(formula(p.astype(np.float64), target.astype(np.float64)))) for p, _ in asked]
        except (ValueError, IndexError):
            return None
        if all(abs(e - float(v)) <= SAME * max(abs(float(v)), 1e-6) for e, (_, v) in zip(expected, asked, strict=True)):
            return family, reduction
    return None
