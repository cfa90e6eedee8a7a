"""Small pictures side by side on one figure."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sleuth.instruments.result import new_figure

COLOURS = "viridis"


def panels(
    count: int, draw: Callable[[Any, int], None], *, title: str = "", side: float = 1.3, columns: int | None = None
) -> Any:
    """`draw(axes, number)` fills each of them."""
    wide = columns or min(count, max(math.ceil(math.sqrt(count)), 4))
    high = math.ceil(count / wide)
    figure = new_figure(max(side * wide, 3.0), side * high + (0.4 if title else 0))
    if title:
        figure.suptitle(title, fontsize=9)
    for number in range(count):
        axes = figure.add_subplot(high, wide, number + 1)
        draw(axes, number)
    return figure


def picture(axes: Any, values: np.ndarray, title: str = "", **options: Any) -> Any:
    """One array of one or two axes, or of three with colours last."""
    if values.ndim == 1:
        axes.plot(values, linewidth=0.8, color="#4477aa")
        axes.tick_params(labelsize=5)
        drawn = None
    else:
        grey = values.ndim == 2
        drawn = axes.imshow(
            values,
            **({"cmap": COLOURS, **options} if grey else {}),
            interpolation="nearest",
            aspect="auto" if grey and _is_long(values) else "equal",
        )
        axes.set_xticks([])
        axes.set_yticks([])
    if title:
        axes.set_title(title, fontsize=7)
    return drawn


def _is_long(values: np.ndarray) -> bool:
    return max(values.shape) > 4 * min(values.shape)


def in_unit_range(values: np.ndarray, low: float | None = None, high: float | None = None) -> np.ndarray:
    """To [0, 1] by the least and the greatest finite value; what is not finite becomes 0."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    low = float(finite.min()) if low is None and finite.size else low or 0.0
    high = float(finite.max()) if high is None and finite.size else high or 1.0
    scaled = (np.nan_to_num(values.astype(np.float32), posinf=high, neginf=low) - low) / ((high - low) or 1.0)
    return np.clip(scaled, 0.0, 1.0)


def flat_planes(values: np.ndarray) -> np.ndarray:
    """(channels, *positions) with one or two positions: of three or more, the middle slices are taken."""
    while values.ndim > 3:
        values = values[:, values.shape[1] // 2]
    return values


def numbered(shown: int, whole: int, what: str) -> str:
    return f"{whole} {what}" if shown == whole else f"{shown} of {whole} {what}"


def names_for(count: int, given: Sequence[Any] | None) -> list[str]:
    return [str(g) for g in given[:count]] if given is not None else [str(i) for i in range(count)]
