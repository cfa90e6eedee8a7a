"""Recurrent layers: gates in another order, stacked along another axis, with one bias or two.

Common is: weights (gates · width, in), an LSTM's gates in the order input, forget, cell, output, a GRU's reset, update, new,
and two biases, one beside each weight.
"""

import re
from collections.abc import Mapping

import numpy as np

from sleuth.comparing.unit import Unit

# A GRU whose weights are called kernels has its update gate first.
UPDATE_FIRST = (1, 0, 2)


def to_common(unit: Unit, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for ending in endings(unit):
        own = {role: tensors[role + ending] for role in _roles(unit, ending) if role + ending in tensors}
        found |= {role + ending: values for role, values in _common(unit, ending, own).items()}
    return found


def from_common(unit: Unit, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for ending in endings(unit):
        common = {role.removesuffix(ending) if ending else role: v for role, v in tensors.items() if _ending(role) == ending}
        own = _own(unit, ending, common)
        found |= {role + ending: own[role] for role in _roles(unit, ending) if role in own}
    return found


def effective(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With the sum of the two biases in place of each: where only that sum is known to both sides."""
    found = {role: values for role, values in tensors.items() if not role.startswith("bias")}
    for role, values in tensors.items():
        if role.startswith("bias_x"):
            other = tensors.get(role.replace("bias_x", "bias_h"))
            found[role.replace("bias_x", "bias")] = values if other is None else values + other
    return found


def endings(unit: Unit) -> list[str]:
    """Of stacked layers and both directions: "", "_l1", "_reverse", …"""
    return list(dict.fromkeys(_ending(role) for role in unit.tensors))


def _ending(role: str) -> str:
    found = re.search(r"(_l\d+)?(_reverse)?$", role)
    return found.group(0) if found is not None else ""


def _roles(unit: Unit, ending: str) -> list[str]:
    return [role.removesuffix(ending) if ending else role for role in unit.tensors if _ending(role) == ending]


def _stacked_last(unit: Unit, ending: str) -> bool:
    rows, columns = unit.shapes["weight_h" + ending]
    return rows < columns if rows != columns else unit.leaf("weight_h" + ending) not in ("weight_hh", "weight_hh_l0", "Wh")


def _order(unit: Unit, ending: str) -> tuple[int, ...] | None:
    shape = unit.shapes["weight_h" + ending]
    gru = max(shape) == 3 * min(shape)
    return UPDATE_FIRST if gru and "kernel" in unit.leaf("weight_h" + ending) else None


def _gates(values: np.ndarray, order: tuple[int, ...] | None) -> np.ndarray:
    if order is None:
        return values
    blocks = np.split(values, len(order))
    return np.concatenate([blocks[i] for i in order])


def _common(unit: Unit, ending: str, own: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    order, last = _order(unit, ending), _stacked_last(unit, ending)
    found = {}
    for role, values in own.items():
        if role.startswith("weight"):
            found[role] = _gates(values.T if last else values, order)
    found |= {role: _gates(own[role], order) for role in ("bias_x", "bias_h") if role in own}
    if "bias" in own and own["bias"].ndim == 2:
        found["bias_x"], found["bias_h"] = (_gates(row, order) for row in own["bias"])
    elif "bias" in own:
        found["bias_x"] = _gates(own["bias"], order)
        found["bias_h"] = np.zeros_like(own["bias"])
        if "bias_n" in own:
            found["bias_h"][-len(own["bias_n"]) :] = own["bias_n"]
    return found


def _own(unit: Unit, ending: str, common: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    order, last = _order(unit, ending), _stacked_last(unit, ending)
    found = {}
    for role, values in common.items():
        turned = _gates(values, order)
        found[role] = turned.T if role.startswith("weight") and last else turned
    if "bias_x" not in common:
        return found
    one, two = found["bias_x"], found.get("bias_h", np.zeros_like(found["bias_x"]))
    shape = unit.shapes.get("bias" + ending)
    if shape is not None and len(shape) == 2:
        found["bias"] = np.stack([one, two])
    elif "bias_n" + ending in unit.tensors:
        width = unit.shapes["bias_n" + ending][0]
        summed = one + two
        summed[-width:] = one[-width:]
        found["bias"], found["bias_n"] = summed, two[-width:]
    else:
        found["bias"] = one + two
    return found
