"""How a profile looks: tables of phases, layers and memory, and the same as bars."""

from typing import TYPE_CHECKING, Any

from sleuth.instruments.columns import BLUE, GREEN, ORANGE, RED, html_table, milliseconds, short, size, text_table
from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.core.contract.workload import LayerWork
    from sleuth.instruments.profile import StepProfile

MOST_LAYERS = 15
HEAD = ("layer", "kind", "share", "forward", "backward", "FLOPs", "kept", "")
PARTS = ("parameters", "gradients", "optimiser", "activations", "buffers", "batch")
COLOURS = {"data": RED, "forward": BLUE, "backward": ORANGE, "optimiser": GREEN}
OUTSIDE = "(outside of layers)"
# Growth below this a step is rounding of an allocator's blocks.
NO_GROWTH = 1024


def table(found: "StepProfile") -> str:
    layers = [_row(found, layer) for layer in found.slowest[:MOST_LAYERS]]
    left = len(found.layers) - len(layers)
    more = [f"{left} more layers take less"] if left > 0 else []
    return "\n".join((_phases(found), "", text_table(HEAD, layers, more), "", *_memory(found), *found.notes))


def html(found: "StepProfile") -> str:
    rows = [_row(found, layer) for layer in found.slowest[:MOST_LAYERS]]
    return html_table(HEAD, rows, (_phases(found), *_memory(found), *found.notes))


def _phases(found: "StepProfile") -> str:
    usual = found.seconds
    parts = (f"{phase} {milliseconds(getattr(usual, phase))} ({share:.0%})" for phase, share in found.shares.items())
    whole = "" if found.fused is None else f"; as one program it takes {milliseconds(usual.data + found.fused)}"
    return f"A step takes {milliseconds(usual.total)} on {found.device}: {', '.join(parts)}{whole}"


def _row(found: "StepProfile", layer: "LayerWork") -> list[str]:
    flops = f"{layer.flops:.3g}" if layer.flops else ""
    kept = size(layer.saved) if layer.saved else ""
    times = (milliseconds(layer.forward), milliseconds(layer.backward))
    return [layer.path or OUTSIDE, layer.kind if layer.path else "", f"{found.share_of(layer):.0%}", *times, flops, kept, ""]


def _memory(found: "StepProfile") -> list[str]:
    used = found.memory
    parts = [f"{name} {size(getattr(used, name))}" for name in PARTS if getattr(used, name)]
    peak = "" if used.peak is None else f"; at most {size(used.peak)} at once"
    grows = used.growth is not None and used.growth > NO_GROWTH
    growth = [f"Every step leaves {size(used.growth or 0)} behind: look for what keeps it."] if grows else []
    return [f"Memory: {', '.join(parts)}{peak}", *growth]


def draw(found: "StepProfile") -> Any:
    figure = new_figure(10, 6)
    upper, lower = figure.subfigures(2, 1, height_ratios=[1, 2.4])
    _draw_phases(upper.add_subplot(1, 2, 1), found)
    _draw_memory(upper.add_subplot(1, 2, 2), found)
    _draw_layers(lower.add_subplot(), found)
    return figure


def _draw_phases(axes: Any, found: "StepProfile") -> None:
    left = 0.0
    for phase, share in found.shares.items():
        axes.barh([0], [share], left=left, color=COLOURS[phase], label=f"{phase} {share:.0%}")
        left += share
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.5, 1.2)
    axes.axis("off")
    axes.legend(frameon=False, fontsize=7, ncols=2, loc="upper center")
    axes.set_title(f"A step takes {milliseconds(found.seconds.total)}", fontsize=9)


def _draw_memory(axes: Any, found: "StepProfile") -> None:
    sizes = [getattr(found.memory, name) for name in PARTS]
    axes.barh(PARTS, [s / 2**20 for s in sizes], color=BLUE)
    axes.invert_yaxis()
    axes.tick_params(labelsize=7)
    axes.set_xlabel("MB", fontsize=7)
    peak = "" if found.memory.peak is None else f", at most {size(found.memory.peak)} at once"
    axes.set_title(f"Memory{peak}", fontsize=9)


def _draw_layers(axes: Any, found: "StepProfile") -> None:
    layers = found.slowest[:MOST_LAYERS]
    names = [short(layer.path or OUTSIDE) for layer in layers]
    places = range(len(layers))
    axes.barh(places, [layer.forward * 1e3 for layer in layers], color=BLUE, label="forward")
    behind = [layer.forward * 1e3 for layer in layers]
    axes.barh(places, [layer.backward * 1e3 for layer in layers], left=behind, color=ORANGE, label="backward")
    axes.set_yticks(places, names, fontsize=7, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("ms a step, under the profiler" if found.fused is None else "ms a step, each layer compiled apart")
    axes.set_title("The slowest layers", fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
