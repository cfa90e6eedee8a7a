"""How a landscape looks: a curve, or a map with lines of equal loss beside its surface."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.instruments.columns import BLUE, RED
from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.instruments.landscape import Landscape

LEVELS = 18
# A loss that spans more than this is read on a logarithmic scale.
WIDE = 50.0


def draw(found: "Landscape") -> Any:
    return _curve(found) if found.dimensions == 1 else _map(found)


def _curve(found: "Landscape") -> Any:
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    axes.plot(found.distances, found.losses, color=BLUE)
    axes.plot([0], [found.centre], "o", color=RED, label=f"the model: {found.centre:.3g}")
    if _is_wide(found.losses):
        axes.set_yscale("log")
    axes.set_xlabel("distance along a random direction (1: as far as the weights are long)")
    axes.set_ylabel("loss")
    axes.set_title("The loss around the weights")
    axes.legend(frameon=False)
    return figure


def _map(found: "Landscape") -> Any:
    figure = new_figure(10, 4.6)
    heights, label = _heights(found.losses)
    x, y = np.meshgrid(found.distances, found.distances, indexing="ij")
    flat = figure.add_subplot(1, 2, 1)
    filled = flat.contourf(x, y, heights, levels=LEVELS, cmap="viridis")
    flat.contour(x, y, heights, levels=LEVELS, colors="white", linewidths=0.4)
    flat.plot([0], [0], "o", color=RED, markersize=5)
    flat.set_xlabel("first direction")
    flat.set_ylabel("second direction")
    flat.set_aspect("equal")
    figure.colorbar(filled, ax=flat, label=label)
    surface = figure.add_subplot(1, 2, 2, projection="3d")
    surface.plot_surface(x, y, heights, cmap="viridis", linewidth=0, antialiased=True)
    figure.suptitle(f"The loss around the weights; the model is the red point: {found.centre:.3g}", fontsize=10)
    surface.tick_params(labelsize=7)
    return figure


def _heights(losses: np.ndarray) -> tuple[np.ma.MaskedArray, str]:
    known = np.ma.masked_invalid(losses)
    return (np.ma.log10(known), "loss, as a power of ten") if _is_wide(losses) else (known, "loss")


def _is_wide(losses: np.ndarray) -> bool:
    finite = losses[np.isfinite(losses)]
    return bool(finite.size and finite.min() > 0 and finite.max() / finite.min() > WIDE)
