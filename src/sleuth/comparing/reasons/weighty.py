"""Linear layers, convolutions and pools: layout, bias, padding."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sleuth.comparing.reasons.formula import Formula, Task

Lay = Callable[[Task], np.ndarray]  # windows over the input: (n, *positions, in, *kernel)
# Of a batch of images: a convolution by hand is slow.
SAMPLES = 2
MODES = {"zeros": "constant", "the edge": "edge", "a mirror image": "reflect", "the other side": "wrap"}


def linears(task: Task) -> Iterator[Formula]:
    weight = task.weights.get("weight")
    if weight is None or weight.ndim != 2:
        return
    bias = task.weights.get("bias", np.zeros(1))
    for text, matrix in (("its weights as they are", weight), ("its weights transposed", weight.T)):
        if matrix.shape[1] == task.x.shape[-1]:
            yield Formula("layout", text, partial(_product, matrix=matrix, bias=bias))
            yield Formula("bias", f"{text}, without the bias", partial(_product, matrix=matrix, bias=None))


def convolutions(task: Task) -> Iterator[Formula]:
    weight = task.weights.get("weight")
    if weight is None or weight.ndim != task.x.ndim or task.y.ndim != task.x.ndim or weight.shape[1] != task.x.shape[-1]:
        return
    bias = task.weights.get("bias", np.zeros(1))
    kernel = weight.shape[2:]
    flipped = weight[(slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))]
    for windows, text in _windows(task, kernel):
        for values, also in ((weight, ""), (flipped, ", with the kernel turned round")):
            yield Formula("padding", text + also, partial(_convolved, windows=windows, weight=values, bias=bias), _few)


def pools(task: Task) -> Iterator[Formula]:
    kernel = _numbers(task.settings.get("kernel"), task.x.ndim - 2)
    if kernel is None or task.y.ndim != task.x.ndim:
        return
    axes = tuple(range(-len(kernel), 0))
    for windows, text in _windows(task, kernel):
        yield Formula("kind", f"the mean, {text}", partial(_mean, windows=windows, axes=axes), _few)
    for windows, text in _windows(task, kernel, fill=-np.inf):
        yield Formula("kind", f"the maximum, {text}", partial(_maximum, windows=windows, axes=axes), _few)


def _few(values: np.ndarray) -> np.ndarray:
    return values[:SAMPLES].astype(np.float64)


def _product(task: Task, matrix: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    found = task.x.astype(np.float64) @ matrix.T
    return found if bias is None else found + bias


def _convolved(task: Task, windows: Lay, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return _convolve(windows(task), weight) + bias


def _mean(task: Task, windows: Lay, axes: tuple[int, ...]) -> np.ndarray:
    return np.asarray(windows(task).mean(axes))


def _maximum(task: Task, windows: Lay, axes: tuple[int, ...]) -> np.ndarray:
    return np.asarray(windows(task).max(axes))


def _convolve(windows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Windows are (n, *positions, in, *kernel)."""
    axes = weight.ndim - 1
    return np.tensordot(windows, weight, (tuple(range(-axes, 0)), tuple(range(1, weight.ndim))))


def _windows(task: Task, kernel: tuple[int, ...], fill: float = 0.0) -> Iterator[tuple[Lay, str]]:
    """Every way to lay so many windows over the input: what stands before its edge, and what it is filled with."""
    inside, outside = task.x.shape[1:-1], task.y.shape[1:-1]
    strides = _numbers(task.settings.get("stride"), len(kernel)) or tuple(
        max(1, round(i / max(o, 1))) for i, o in zip(inside, outside, strict=True)
    )
    for before in product(*(range(k) for k in kernel)):
        if len(set(before)) > 1 and len(set(kernel)) == 1 and len(set(inside)) == 1:
            continue
        after = [(o - 1) * s + k - b - i for i, o, s, k, b in zip(inside, outside, strides, kernel, before, strict=True)]
        text = f"padding of {before[0]} before and {max(after[0], 0)} after" if any(before) or max(after) > 0 else "no padding"
        for name, mode in MODES.items() if text != "no padding" and np.isfinite(fill) else [("", "constant")]:
            filled = f", filled with {name}" if name and mode != "constant" else ""
            yield _laid(kernel, strides, before, tuple(after), outside, mode, fill), text + filled


def _laid(
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    outside: tuple[int, ...],
    mode: str,
    fill: float,
) -> Lay:
    def lay(task: Task) -> np.ndarray:
        x = _few(task.x)
        pads = [(0, 0), *((b, max(a, 0)) for b, a in zip(before, after, strict=True)), (0, 0)]
        kept: dict[str, Any] = {"constant_values": fill} if mode == "constant" else {}
        padded = np.pad(x, pads, mode=mode, **kept)  # type: ignore[call-overload]
        axes = tuple(range(1, x.ndim - 1))
        laid = sliding_window_view(padded, kernel, axis=axes)
        steps = (slice(None), *(slice(None, None, s) for s in strides))
        return np.asarray(laid[steps][(slice(None), *(slice(0, o) for o in outside))])

    return lay


def _numbers(value: object, count: int) -> tuple[int, ...] | None:
    if isinstance(value, int):
        return (value,) * count
    if isinstance(value, tuple) and len(value) == count and all(isinstance(n, int) for n in value):
        return value
    return None
