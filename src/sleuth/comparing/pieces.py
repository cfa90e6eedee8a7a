"""Arrays that one framework holds in one piece and another in several, seen as all of them could hold them.

Attention: one projection for queries, keys and values, or one each, with or without an axis for the heads. Cells of recurrent
layers: gates side by side in one matrix, or a small layer for each.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from sleuth.core.observation import Architecture, Parameter

PROJECTIONS = ("query", "key", "value")
# A layer inside an attention → what it makes.
PART = re.compile(r"(?:^|\.)(?:attention_)?(q|query|k|key|v|value|o|out|output)(?:_proj|_dense|_linear)?$")
PARTS = {"q": "query", "k": "key", "v": "value", "o": "out", "output": "out"}
# Layers that make one gate each, of the input and of the state before, in the order input, forget, cell, output.
GATES = (("ii", "if_", "ig", "io"), ("hi", "hf", "hg", "ho"))
STACKED = ("dense_i", "dense_h")


@dataclass(frozen=True)
class Piece:
    """Made of the model's own arrays: several beside each other along the last axis, rows of one, or one with axes folded."""

    sources: tuple[str, ...]
    shape: tuple[int, ...]
    rows: tuple[int, int] | None = None

    def gathered(self, arrays: Mapping[str, np.ndarray | None]) -> np.ndarray | None:
        own = [arrays.get(source) for source in self.sources]
        if any(array is None for array in own):
            return None
        whole = np.concatenate([array for array in own if array is not None], axis=-1)
        return (whole if self.rows is None else whole[slice(*self.rows)]).reshape(self.shape)

    def scattered(self, values: np.ndarray, arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """What the model's own arrays become when this one is written."""
        if self.rows is not None:
            (source,) = self.sources
            whole = arrays[source].copy()
            whole[slice(*self.rows)] = values
            yield source, whole
        else:
            for source, part in zip(self.sources, np.split(values, len(self.sources), axis=-1), strict=True):
                yield source, part.reshape(arrays[source].shape)


def pieces_of(architecture: Architecture) -> tuple[tuple[Parameter, ...], dict[str, Piece]]:
    """The parameters with pieces in the place of what they are made of, and the pieces by their paths."""
    families = {layer.path: layer.family for layer in architecture.layers}
    cells = {layer.path for layer in architecture.layers if layer.family == "recurrent"}
    found: list[Parameter] = []
    pieces: dict[str, Piece] = {}
    gathered = _cells(architecture.parameters, cells)
    for parameter in architecture.parameters:
        holder = parameter.layer.rpartition(".")[0]
        made: Iterable[tuple[Parameter, Piece]] = ()
        if holder in gathered:
            made = gathered.pop(holder)
        elif holder in cells and _is_gate(parameter):
            continue
        elif families.get(parameter.layer) == "attention" and _is_joint(parameter):
            made = list(_projections(parameter))
        elif families.get(holder) == "attention" and len(parameter.shape) > 1:
            made = list(_folded(parameter))
        pieces |= {p.path: piece for p, piece in made}
        found += [p for p, _ in made] or [parameter]
    places = {layer: place for place, layer in reversed(list(enumerate(p.layer for p in found)))}
    return tuple(sorted(found, key=lambda p: places[p.layer])) if pieces else tuple(found), pieces


def part_of_attention(path: str) -> str:
    """query, key, value or out; "" for any other layer."""
    found = PART.search(path)
    return "" if found is None else PARTS.get(found.group(1), found.group(1))


def _is_joint(parameter: Parameter) -> bool:
    return parameter.path.rpartition(".")[2].startswith("in_proj") and parameter.shape[0] % 3 == 0


def _projections(parameter: Parameter) -> Iterator[tuple[Parameter, Piece]]:
    width = parameter.shape[0] // 3
    leaf = "bias" if len(parameter.shape) == 1 else "weight"
    for i, name in enumerate(PROJECTIONS):
        layer, shape = f"{parameter.layer}.{name}", (width, *parameter.shape[1:])
        seen = replace(parameter, path=f"{layer}.{leaf}", layer=layer, shape=shape, family="linear")
        yield seen, Piece((parameter.path,), shape, (i * width, (i + 1) * width))


def _folded(parameter: Parameter) -> Iterator[tuple[Parameter, Piece]]:
    """An axis for the heads is folded into the one beside it."""
    shape = parameter.shape
    bias = parameter.path.rpartition(".")[2] == "bias"
    if len(shape) == 2 and not bias:
        return
    out = part_of_attention(parameter.layer) == "out"
    flat = (prod(shape),) if bias else (prod(shape[:-1]), shape[-1]) if out else (shape[0], prod(shape[1:]))
    yield replace(parameter, shape=flat, family="linear"), Piece((parameter.path,), flat)


def _is_gate(parameter: Parameter) -> bool:
    return parameter.layer.rpartition(".")[2] in (*GATES[0], *GATES[1], *STACKED)


def _cells(parameters: Iterable[Parameter], cells: set[str]) -> dict[str, list[tuple[Parameter, Piece]]]:
    """Of each cell that is made of layers, its two matrices and its bias."""
    inside: dict[str, dict[str, Parameter]] = {}
    for p in parameters:
        holder, _, name = p.layer.rpartition(".")
        if holder in cells and _is_gate(p):
            inside.setdefault(holder, {})[f"{name}.{p.path.rpartition('.')[2]}"] = p
    return {cell: list(_cell(cell, own)) for cell, own in inside.items()}


def _cell(cell: str, own: Mapping[str, Parameter]) -> Iterator[tuple[Parameter, Piece]]:
    for name, gates, stacked in (("weights_ih", GATES[0], STACKED[0]), ("weights_hh", GATES[1], STACKED[1])):
        yield from _side_by_side(f"{cell}.{name}", cell, own, "kernel", gates, stacked)
    for gates, stacked in zip(GATES, STACKED, strict=True):
        yield from _side_by_side(f"{cell}.bias", cell, own, "bias", gates, stacked)


def _side_by_side(
    path: str, cell: str, own: Mapping[str, Parameter], leaf: str, gates: Iterable[str], stacked: str
) -> Iterator[tuple[Parameter, Piece]]:
    names = [f"{gate}.{leaf}" for gate in gates]
    found = [own[name] for name in (names if names[0] in own else [f"{stacked}.{leaf}"]) if name in own]
    if found:
        shape = (*found[0].shape[:-1], sum(p.shape[-1] for p in found))
        seen = replace(found[0], path=path, layer=cell, shape=shape, family="recurrent")
        yield seen, Piece(tuple(p.path for p in found), shape)
