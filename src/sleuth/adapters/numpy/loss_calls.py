"""Which loss a hand-written one is. Its name may say anything, so its values decide."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sleuth import kernel
from sleuth.adapters.numpy.listening import Listener, is_array
from sleuth.adapters.numpy.losses import Call, GivenLoss, Loss
from sleuth.core.observation import Argument, ArrayFacts, LossCall
from sleuth.core.statistics import Statistics
from sleuth.core.subject import Parts
from sleuth.core.tree import leaves

# Room for an epsilon inside a logarithm; other losses differ far more at the points that are asked.
SAME = 1e-3
POINTS = 2
WIDE = 4.0
# Beyond this the sums along axes would cost more than the step.
LARGE = 20_000_000

Asked = tuple[np.ndarray, np.ndarray]  # an output, and what the loss said to it
Formula = Callable[[np.ndarray, np.ndarray], np.ndarray]


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


# For a loss that raised: only its name is left to go by, and only shapes are judged.
NAMES = (
    ("bce", ("bce", "binarycrossentropy")),
    ("cross-entropy", ("crossentropy", "crossentropyloss")),
    ("nll", ("nll", "negativeloglikelihood")),
    ("mse", ("mse", "meansquarederror", "squarederror", "l2loss")),
    ("l1", ("l1", "mae", "meanabsoluteerror")),
    ("huber", ("huber", "smoothl1")),
)


def loss_calls(name: str, loss: Loss, made: Call, batch: Parts, listener: Listener) -> Iterator[LossCall]:
    output = made.output if loss.sees_output else next(iter(listener.outputs), None)
    target = batch.target
    family, reduction = "other", None
    broadcast = None
    if isinstance(output, np.ndarray) and isinstance(target, np.ndarray):
        family, reduction = _recognise(loss, made, output, target)
        broadcast = _broadcast(output, target) if family in ("mse", "l1", "huber") else None
    value = np.asarray(made.value)
    number = float(value.reshape(())) if value.size == 1 and value.dtype.kind in "fiub" else None
    number = number if number is not None and np.isfinite(number) else None
    yield LossCall(
        name=name,
        family=family,
        value=number,
        arguments=_arguments(output, target, listener),
        output_shape=tuple(value.shape),
        broadcast=broadcast,
        reduction=reduction,
        location=(place := loss.location()),
        broadcast_location=place,
        returned=float(value.mean()) if value.size and value.dtype.kind in "fiub" and np.isfinite(value).all() else None,
    )


def failed_call(name: str, listener: Listener, batch: Parts) -> LossCall:
    """The call of a loss that raised."""
    plain = name.lower().replace("_", "")
    family = next((family for family, words in NAMES if any(word in plain for word in words)), "other")
    output = next(iter(listener.outputs), None)
    return LossCall(name, family, None, _arguments(output, batch.target, listener), failed=True)


def _arguments(output: Any, target: Any, listener: Listener) -> tuple[Argument, ...]:
    sides = (("output", output), ("target", target))
    return tuple(_argument(role, array, listener) for role, tree in sides for _, array in leaves(tree, is_array))


def _recognise(loss: Loss, made: Call, output: np.ndarray, target: np.ndarray) -> tuple[str, str | None]:
    """The one known loss that gives the same numbers: at random outputs where the loss can be asked, else as it is."""
    asked = _asked(loss, output, target, 0.05, 0.95) if isinstance(loss, GivenLoss) else [(output, np.asarray(made.value))]
    found = {fit for family, formula in _formulas(output, target) if (fit := _fit(family, formula, target, asked))}
    if len(found) != 1:
        return "other", None
    family, reduction = found.pop()
    if family == "bce" or not isinstance(loss, GivenLoss):
        return family, reduction
    # Between zero and one Huber's loss is half the square.
    wide = _asked(loss, output, target, -WIDE, WIDE)
    return (family, reduction) if _fit(family, {**CLASSES, **ELEMENTS}[family], target, wide) else ("other", None)


def _asked(loss: GivenLoss, output: np.ndarray, target: np.ndarray, low: float, high: float) -> list[Asked]:
    """The loss at random outputs; empty where it refuses them, and then it stays unknown."""
    rng = np.random.default_rng(0)
    points = [rng.uniform(low, high, output.shape).astype(output.dtype) for _ in range(POINTS)]
    try:
        with np.errstate(all="ignore"):
            return [(p, np.asarray(Call(loss.ask(p, target)).value)) for p in points]
    except Exception:
        return []


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


def _broadcast(output: np.ndarray, target: np.ndarray) -> tuple[int, ...] | None:
    try:
        shape = np.broadcast_shapes(output.shape, target.shape)
    except ValueError:
        return None
    return shape if np.prod(shape) > max(output.size, target.size) else None


def _argument(role: str, array: np.ndarray, listener: Listener) -> Argument:
    maker = listener.producer(array) if role == "output" else None
    return Argument(
        facts=array_facts(role, array),
        role=role,
        producer=maker.operation if maker else None,
        axis_sums=_axis_sums(array),
        producer_location=maker.location if maker else None,
        producer_axis=maker.axis if maker else None,
        behind=listener.behind(maker) if maker else None,
        exp_sums=_exp_sums(array),
    )


def array_facts(path: str, array: np.ndarray) -> ArrayFacts:
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    whole = float(np.mean(finite == np.floor(finite))) if finite.size and array.dtype.kind in "fiu" else float(finite.size > 0)
    return ArrayFacts(path, array.shape, str(array.dtype), Statistics.from_row(kernel.measure([array])[0]), whole)


def _axis_sums(array: np.ndarray) -> tuple[tuple[float, float], ...]:
    if array.dtype.kind != "f" or not 0 < array.size <= LARGE or not np.isfinite(array).all():
        return ()
    sums = [array.sum(axis, dtype=np.float64) for axis in range(array.ndim)]
    return tuple((float(s.min()), float(s.max())) for s in sums)


def _exp_sums(array: np.ndarray) -> tuple[tuple[float, float], ...]:
    if array.dtype.kind != "f" or not array.size or not (array <= 0).all():
        return ()
    return _axis_sums(np.exp(array.astype(np.float64)))
