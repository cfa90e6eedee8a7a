"""How a batch looks, by the kind of its first input."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.instruments.panels import in_unit_range, panels, picture
from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.instruments.show_batch import Column, ShownBatch

WIDEST = 80
MOST_COLUMNS = 12


def text(batch: "ShownBatch") -> str:
    lines = [f"{batch.samples} samples"]
    rows = [("", column) for column in batch.columns]
    if batch.target is not None:
        rows.append(("" if batch.target.name == "target" else "target ", batch.target))
    for role, column in rows:
        span = f", range [{column.low:.4g}, {column.high:.4g}]" if column.low is not None else ""
        lines.append(f"  {role}{column.name}: {column.kind}, {column.dtype} {column.shape}{span}")
    first = batch.columns[0]
    if first.kind in ("tokens", "text", "table", "numbers"):
        for i in range(batch.most):
            label = f"  → {batch.labels[i]}" if batch.labels is not None else ""
            lines.append(f"  {i:3}  {sample_text(batch, first, i)}{label}")
    elif batch.labels is not None:
        lines.append(f"  labels: {', '.join(batch.labels[: batch.most])}")
    return "\n".join(lines)


def sample_text(batch: "ShownBatch", column: "Column", number: int) -> str:
    value = column.values[number]
    if column.kind == "tokens":
        told = batch.decode(value) if batch.decode is not None else " ".join(map(str, value))
    elif column.kind == "text":
        told = value
    else:
        told = "  ".join(f"{v:.4g}" for v in np.atleast_1d(value).reshape(-1)[:MOST_COLUMNS])
    return told if len(told) <= WIDEST else told[: WIDEST - 1] + "…"


def draw(batch: "ShownBatch") -> Any:
    first = batch.columns[0]
    if first.kind == "images":
        return _images(batch, first)
    if first.kind == "signals":
        return _signals(batch, first)
    if first.kind in ("tokens", "text"):
        return _written(batch, first)
    return _table(batch, first)


def _title(batch: "ShownBatch", number: int) -> str:
    return batch.labels[number] if batch.labels is not None else ""


def _images(batch: "ShownBatch", column: "Column") -> Any:
    span = f"{column.dtype} {column.shape}, range [{column.low:.3g}, {column.high:.3g}]" if column.low is not None else ""
    images = [image_of(column.values[i]) for i in range(batch.most)]
    scaled = in_unit_range(np.stack(images), column.low, column.high)

    def one(axes: Any, i: int) -> None:
        picture(axes, scaled[i], _title(batch, i), **({"cmap": "gray", "vmin": 0, "vmax": 1} if scaled[i].ndim == 2 else {}))

    return panels(batch.most, one, title=f"{column.name}: {span}")


def image_of(value: np.ndarray) -> np.ndarray:
    """(height, width) or (height, width, 3); channels may stand first or last."""
    while value.ndim > 3:
        value = value[..., value.shape[-1] // 2]
    if value.ndim == 2:
        return value
    channels_last = value.shape[-1] in (1, 2, 3, 4) and value.shape[0] not in (1, 3)
    planes = value if channels_last else np.moveaxis(value, 0, -1)
    return planes[..., :3] if planes.shape[-1] >= 3 else planes[..., 0]


def _signals(batch: "ShownBatch", column: "Column") -> Any:
    def one(axes: Any, i: int) -> None:
        rows = np.atleast_2d(column.values[i])
        # The longer axis is time.
        rows = rows if rows.shape[-1] >= rows.shape[0] else rows.T
        for row in rows[:8]:
            axes.plot(row, linewidth=0.7)
        axes.tick_params(labelsize=5)
        axes.set_title(_title(batch, i), fontsize=7)

    return panels(batch.most, one, title=f"{column.name}: {column.dtype} {column.shape}", side=1.8)


def _written(batch: "ShownBatch", column: "Column") -> Any:
    figure = new_figure(8, 0.3 * batch.most + 0.6)
    axes = figure.add_subplot()
    axes.axis("off")
    for i in range(batch.most):
        y = 1 - (i + 0.5) / batch.most
        axes.text(0, y, _title(batch, i)[:14], fontsize=8, weight="bold", va="center", parse_math=False)
        axes.text(0.14, y, sample_text(batch, column, i), fontsize=8, va="center", family="monospace", parse_math=False)
    axes.set_title(f"{column.name}: {column.dtype} {column.shape}", fontsize=9, loc="left")
    return figure


def _table(batch: "ShownBatch", column: "Column") -> Any:
    """Standardised by column, so that one with large numbers does not hide the others."""
    values = column.values[: batch.most].reshape(batch.most, -1).astype(np.float64)
    whole = np.ma.masked_invalid(column.values.reshape(len(column.values), -1).astype(np.float64))
    mean, spread = whole.mean(axis=0).filled(0.0), whole.std(axis=0).filled(0.0)
    figure = new_figure(7, 0.25 * batch.most + 1)
    axes = figure.add_subplot()
    drawn = axes.imshow((values - mean) / np.where(spread > 0, spread, 1), cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")
    axes.set_yticks(range(batch.most), [_title(batch, i) or str(i) for i in range(batch.most)], fontsize=6)
    axes.set_xlabel("column")
    axes.set_title(f"{column.name}: {column.dtype} {column.shape}", fontsize=9, loc="left")
    figure.colorbar(drawn, ax=axes, label="standard deviations from the column's mean")
    return figure
