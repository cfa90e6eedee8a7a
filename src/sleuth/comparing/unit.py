"""The parameters of a model, gathered into what carries them: a unit is a layer with its tensors by their role."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sleuth.comparing.pieces import part_of_attention
from sleuth.comparing.side import Side
from sleuth.core.contract.adapter import CheckpointState
from sleuth.core.observation import Layer, Parameter

NORMS = ("batchnorm", "norm")
# The last word of a parameter's path → what it does. Vectors that no name explains are biases, larger arrays weights.
ROLES = {
    **dict.fromkeys(("gamma", "scale", "g"), "scale"),
    **dict.fromkeys(("bias", "b", "beta", "offset", "shift"), "bias"),
    **dict.fromkeys(("running_mean", "moving_mean", "mean"), "mean"),
    **dict.fromkeys(("running_var", "moving_variance", "moving_var", "variance", "var"), "variance"),
}
RECURRENT = (
    (r"(bias_ih|bias_i\b)", "bias_x"),
    (r"(bias_hh|bias_h\b)", "bias_h"),
    (r"(bias_n|bhn)$", "bias_n"),
    (r"(^|_)b(ias)?(_l\d+|$)", "bias"),
    (r"(hh|recurrent|^wh$|hidden)", "weight_h"),
    (r"(ih|kernel|^wx$|input|^w$)", "weight_x"),
)


@dataclass(frozen=True)
class Unit:
    path: str
    family: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, str] = field(default_factory=dict)  # role → path
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # role → shape
    statistics: frozenset[str] = frozenset()  # roles that are kept beside the parameters
    part: str = ""  # of an attention: query, key, value or out

    def leaf(self, role: str) -> str:
        return re.split(r"[./]", self.tensors[role])[-1]


def units_of(side: Side) -> tuple[Unit, ...]:
    layers = {layer.path: layer for layer in side.architecture.layers}
    found: list[Unit] = []
    for parameter in _together(side.parameters):
        if parameter.tied_to is not None:
            continue
        layer = layers.get(parameter.layer)
        begun = found[-1] if found else None
        kind, settings = (layer.kind, layer.settings) if layer is not None else ("", {})
        if parameter.path in side.pieces:
            settings = {}  # they speak of what it is made of
        family = _family(parameter.family if layer is None else layer.family, kind)
        role = _role(parameter, family)
        if begun is None or parameter.layer != begun.path or role in begun.tensors or _begins(parameter, begun):
            begun = Unit(parameter.layer, family, kind, settings, part=_part(parameter.layer, layers))
            found.append(begun)
        tensors, shapes = {**begun.tensors, role: parameter.path}, {**begun.shapes, role: parameter.shape}
        found[-1] = replace(begun, tensors=tensors, shapes=shapes)
    named = [replace(u, path=next(iter(u.tensors.values()))) if u.path.startswith("#") else u for u in found]
    return tuple(_with_statistics(side, named))


def _part(path: str, layers: Mapping[str, Layer]) -> str:
    holder = layers.get(path.rpartition(".")[0])
    return part_of_attention(path) if holder is not None and holder.family == "attention" else ""


def _together(parameters: tuple[Parameter, ...]) -> list[Parameter]:
    """Parameters that lie side by side, w1 and b1 and w2, belong together by their numbers, in whatever order they come."""
    loose = [replace(p, layer="") for p in parameters if p.layer in ("", p.path)]
    numbers = [re.findall(r"\d+", p.path) for p in loose]
    if len({tuple(n) for n in numbers}) > 1:
        order = {tuple(n): i for i, n in reversed(list(enumerate(numbers)))}
        numbered = sorted(zip(numbers, loose, strict=True), key=lambda pair: (order[tuple(pair[0])], -len(pair[1].shape)))
        loose = [replace(p, layer="#" + ".".join(n) if n else "") for n, p in numbered]
    return [*loose, *(p for p in parameters if p.layer not in ("", p.path))]


def _family(told: str, kind: str) -> str:
    """Of a layer of the user's own, its name may say more than its adapter dares to."""
    if told in ("other", "container") and "norm" in kind.lower():
        return "batchnorm" if "batch" in kind.lower() else "norm"
    return told


def _begins(parameter: Parameter, begun: Unit) -> bool:
    """In a model whose parameters lie side by side, each matrix begins a layer of its own."""
    return not parameter.layer and len(parameter.shape) >= 2 and any(len(s) >= 2 for s in begun.shapes.values())


def _role(parameter: Parameter, family: str) -> str:
    leaf = re.split(r"[./]", parameter.path)[-1]
    if family == "recurrent":
        return _recurrent_role(leaf)
    plain = leaf.lower().rstrip("0123456789").rstrip("_")
    if family in NORMS:
        return ROLES.get(plain, "scale")
    if len(parameter.shape) >= 2:
        return "weight"
    return ROLES.get(plain, "bias" if len(parameter.shape) == 1 else leaf)


def _recurrent_role(leaf: str) -> str:
    suffix = re.search(r"(_l\d+)?(_reverse)?$", leaf)
    ending = suffix.group(0) if suffix is not None else ""
    plain = leaf.lower().removesuffix(ending)
    role = next((role for pattern, role in RECURRENT if re.search(pattern, plain)), leaf)
    return role + ("" if ending in ("", "_l0") else ending)


def _with_statistics(side: Side, units: list[Unit]) -> Iterator[Unit]:
    """Running means and variances, where the adapter lends them."""
    held = side.adapter.statistics(side.bench) if isinstance(side.adapter, CheckpointState) else {}
    for unit in units:
        own = {path: a for path, a in held.items() if re.split(r"[./](?=[^./]*$)", path)[0] == unit.path}
        roles = {ROLES.get(re.split(r"[./]", path)[-1], ""): path for path in own}
        roles = {role: path for role, path in roles.items() if role in ("mean", "variance")}
        shapes = {role: tuple(side.adapter.values(held[path]).shape) for role, path in roles.items()}
        yield replace(
            unit,
            tensors={**unit.tensors, **roles},
            shapes={**unit.shapes, **shapes},
            statistics=frozenset(roles),
        )
