"""What is trained, as far as the updates show it: names, shapes and values of the weights."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.numpy.script.losses import LossChoice
from sleuth.adapters.numpy.script.slots import Slot
from sleuth.core.location import Location, locate

if TYPE_CHECKING:
    from sleuth.adapters.numpy.script.listener import ScriptListener
    from sleuth.adapters.numpy.script.loop import Loop

# Gradients that pile up are carried on too.
GRADIENT = re.compile(
    r"(^|[._])(d_?[A-Z]\w*|d_?[wb]\d*|d(params?|weights?|bias(es)?|gamma|beta|kernels?|filters?)|\w*grads?\w*|nabla\w*|delta\w*)$"
)
REMEMBERED = re.compile(r"running|veloc|moment|momentum|cache|ema\b|history|accum|_hat$|(^|[._])[mvs]_\w+|(^|[._])[mvst]$", re.I)
STATISTICS = re.compile(
    r"running|moving|ema\b|loss|error|acc(uracy)?\b|score|correct|total|count|sum\b|time|elapsed|reward|return", re.I
)
RATE = re.compile(r"(^|[._])(lr|learning_?rate|learn_?rate|eta|alpha|step_?size|epsilon|rate)\d*$", re.I)
UPDATING = re.compile(r"update|step|optimi[sz]|descent|sgd|adam|backprop|backward", re.I)


class HeardNetwork:
    """The weights of a training that a script runs by hand. `values` are those of the last look."""

    listener: "ScriptListener"  # of the watch that was opened for it

    def __init__(self, slots: list[Slot], values: dict[str, np.ndarray], losses: LossChoice) -> None:
        self.slots, self.values, self.losses = slots, values, losses
        self.first = dict(values)
        self.loop: Loop | None = None
        self.no_loop = ""

    def parameters(self) -> list[tuple[str, np.ndarray]]:
        return list(self.values.items())

    def line_of(self, name: str) -> Location | None:
        slot = next((s for s in self.slots if s.name == name), None)
        return None if slot is None else locate(slot.update.file, slot.update.line)


def weights_among(carried: list[Slot]) -> list[Slot]:
    """Empty where nothing shows that it is a training."""
    found = [
        s for s in carried if not s.duplicate and not GRADIENT.search(s.update.target) and not STATISTICS.search(s.update.target)
    ]
    found = [s for s in found if s.shape or _is_taken_off(s)]
    found = [s for s in found if not _is_remembered(s, found)]
    arrays = [s for s in found if s.shape]
    return found if arrays and any(_shows_training(s) for s in arrays) else []


def _is_taken_off(slot: Slot) -> bool:
    """A number that something is taken off, and not a sum of many."""
    text = slot.update.value
    return (
        slot.update.scaled is False
        and (RATE.search(" ".join(slot.update.operands)) is not None or _has_rate(slot))
        and bool(text)
    )


def _has_rate(slot: Slot) -> bool:
    return any(RATE.search(operand) for operand in slot.update.operands)


def _is_remembered(slot: Slot, all_of_them: list[Slot]) -> bool:
    """Velocities and means of gradients: of the shape of a weight, and either used by its update or by name and form."""
    alike = [s for s in all_of_them if s is not slot and s.shape == slot.shape]
    used = any(slot.update.target in s.update.operands for s in alike)
    fades = slot.update.scaled and any(not s.update.scaled or s.order > slot.order for s in alike)
    return used or fades or (bool(alike) and REMEMBERED.search(slot.update.target) is not None)


def _shows_training(slot: Slot) -> bool:
    update = slot.update
    words = [*update.operands, *re.findall(r"[\w.]+", update.value)]
    return any(GRADIENT.search(w) or RATE.search(w) for w in words) or UPDATING.search(update.function) is not None


def give_names(slots: list[Slot]) -> None:
    """As the user calls them: W1, weights.0, Dense1.W."""
    owners: dict[int, int] = {}
    for slot in slots:
        text = slot.update.target.removeprefix("self.")
        base, key = re.sub(r"\[.*$", "", text), slot.key
        if slot.update.each:
            slot.name = f"{base}.{key[1] if isinstance(key, tuple) else key}"
        elif "[" in text and isinstance(key, tuple) and isinstance(key[1], str):
            slot.name = key[1]
        elif "[" in text and isinstance(key, tuple):
            slot.name = f"{base}.{key[1]}"
        else:
            slot.name = base
    for name in {s.name for s in slots if [o.name for o in slots].count(s.name) > 1}:
        for slot in (s for s in slots if s.name == name):
            number = owners.setdefault(_owner(slot.key), len(owners))
            slot.name = f"{number}.{name.rpartition('.')[2]}"
    seen: set[str] = set()
    for i, slot in enumerate(slots):
        slot.name = f"{slot.name}.{i}" if slot.name in seen else slot.name
        seen.add(slot.name)


def _owner(key: Any) -> int:
    return key[0] if isinstance(key, tuple) and isinstance(key[0], int) else hash(str(key))


def in_order(slots: list[Slot]) -> list[Slot]:
    """As the network's layers follow one another, where their shapes tell: many a backward updates the last one first."""
    matrices = [s.shape for s in slots if len(s.shape) == 2 and min(s.shape) > 1]
    widths = {s.shape[-1] if len(s.shape) == 1 else max(s.shape) for s in slots if s.shape and np.prod(s.shape) == max(s.shape)}
    out_last = sum(shape[1] in widths for shape in matrices) >= sum(shape[0] in widths for shape in matrices)
    forwards = sum(a[1] == b[0] if out_last else a[0] == b[1] for a, b in pairwise(matrices))
    backwards = sum(b[1] == a[0] if out_last else b[0] == a[1] for a, b in pairwise(matrices))
    return slots[::-1] if backwards > forwards else slots
