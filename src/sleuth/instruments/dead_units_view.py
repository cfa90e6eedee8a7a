"""How silent units look: a table, and for each layer how often its units fire, sorted."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.instruments.columns import BLUE, RED, html_table, short, text_table
from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.instruments.dead_units import DeadUnits, LayerUnits

HEAD = ("activation", "kind", "units", "dead", "share", "constant", "which")
COLUMNS = 4
NAMED = 8


def table(found: "DeadUnits") -> str:
    return text_table(HEAD, [_row(layer) for layer in found.layers], _closing(found))


def html(found: "DeadUnits") -> str:
    return html_table(HEAD, [_row(layer) for layer in found.layers], _closing(found))


def _row(layer: "LayerUnits") -> list[str]:
    which = ", ".join(map(str, layer.dead[:NAMED])) + (" …" if len(layer.dead) > NAMED else "")
    numbers = [str(layer.units), str(len(layer.dead)), f"{layer.dead_share:.0%}", str(len(layer.constant) or "")]
    return [layer.path, layer.activation, *numbers, which]


def _closing(found: "DeadUnits") -> list[str]:
    units = sum(layer.units for layer in found.layers)
    return [f"{found.dead} of {units:,} units are zero for each of {found.samples:,} samples", *found.notes]


def draw(found: "DeadUnits") -> Any:
    rows = -(-len(found.layers) // COLUMNS)
    across = min(COLUMNS, len(found.layers))
    figure = new_figure(3 * across + 0.5, 2.1 * rows + 0.5)
    for place, layer in enumerate(found.layers):
        axes = figure.add_subplot(rows, across, place + 1)
        active = np.sort(layer.active)[::-1]
        axes.stairs(active, np.arange(layer.units + 1), fill=True, color=BLUE, alpha=0.8)
        if layer.dead:
            axes.axvspan(layer.units - len(layer.dead), layer.units, color=RED, alpha=0.25)
        axes.set_ylim(0, 1.02)
        axes.set_xlim(0, layer.units)
        axes.set_title(f"{short(layer.path)}: {len(layer.dead)} of {layer.units} dead", fontsize=8, parse_math=False)
        axes.tick_params(labelsize=6)
    figure.supylabel("share of samples that a unit fires for", fontsize=8)
    figure.supxlabel("units, the busiest first", fontsize=8)
    return figure
