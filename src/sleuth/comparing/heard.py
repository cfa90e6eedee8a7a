"""What happens inside a model in one forward pass: the outputs of its layers, or what was measured of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.comparing.side import Side
from sleuth.core.contract.adapter import Bench, LayerValues
from sleuth.core.contract.workload import Heard
from sleuth.core.observation import Failure, Frame, Role
from sleuth.core.statistics import COLUMNS

# Words for the same layer in several frameworks.
SAME = (
    (r"max.*pool|pool.*max", "max pool"),
    (r"(avg|average|mean).*pool", "mean pool"),
    (r"flatten|reshape", "flatten"),
    (r"dropout", "dropout"),
    (r"log_?softmax", "log softmax"),
    (r"softmax", "softmax"),
    (r"swish|silu", "silu"),
)


@dataclass(frozen=True)
class Value:
    path: str
    kind: str
    activation: str
    axis: int  # along which units stand
    values: np.ndarray | None  # None: only `row` is known
    row: np.ndarray | None = None  # statistics, see core.statistics
    size: int = 0

    @property
    def layer(self) -> str:
        """Without the number of the call and the part of a tuple."""
        return re.sub(r"(#\d+)?(\[[^\]]*\])?$", "", self.path)

    @property
    def word(self) -> str:
        name = self.activation or re.sub(r"\d|_$", "", self.kind).lower()
        return next((word for pattern, word in SAME if re.search(pattern, name)), name)

    @property
    def turned(self) -> np.ndarray:
        """With the units last, whichever axis they stand along."""
        assert self.values is not None
        return np.moveaxis(self.values, self.axis, -1) if self.values.ndim > 1 else self.values


def listen(side: Side, bench: Bench) -> list[Value]:
    """In the order of calls."""
    if isinstance(side.adapter, LayerValues):
        return _values(side, side.adapter, bench)
    return _statistics(side, bench)


def _values(side: Side, adapter: LayerValues, bench: Bench) -> list[Value]:
    found: list[Value] = []

    def hear(heard: Heard, array: object) -> None:
        values = np.array(side.adapter.values(array))
        if values.dtype.kind == "f":
            found.append(Value(heard.path, heard.kind, heard.activation, heard.unit_axis, values, size=values.size))

    # What an attention is made of says less than what comes out of it, and is not called alike everywhere.
    whole = {layer.path for layer in side.architecture.layers if layer.family == "attention"}
    with adapter.layer_values(bench, lambda path, plain: plain or path in whole, hear):
        bench.forward(side.batch.inputs)
    return found


def _statistics(side: Side, bench: Bench) -> list[Value]:
    found: list[Value] = []
    kinds = {layer.path: layer for layer in side.architecture.layers}
    for observation in bench.observe(side.batch, 0):
        if isinstance(observation, Failure):
            return found
        if isinstance(observation, Frame) and observation.role is Role.ACTIVATION:
            for path, row in zip(observation.paths, observation.table, strict=True):
                layer = kinds.get(re.sub(r"#\d+$", "", path))
                kind = layer.kind if layer is not None else path.rpartition(".")[2]
                activation = str(layer.settings.get("activation", "")) if layer is not None else kind
                if layer is not None and f"{path}.{activation}" in observation.paths:
                    activation = ""  # it is heard by itself
                found.append(Value(path, kind, activation, -1, None, np.asarray(row[: len(COLUMNS)], np.float64), int(row[0])))
    return found


def aligned(first: Sequence[Value], other: Sequence[Value], layers: dict[str, str]) -> list[tuple[Value, Value]]:
    """The longest row of values that stand for each other in both. `layers`: matched units by their paths."""
    known = set(layers.values())
    partners = _partners(first, other, layers)

    def same(i: int, j: int) -> bool:
        a, b = first[i], other[j]
        if a.size != b.size:
            return False
        if a.layer in layers or b.layer in known:
            return (i, j) in partners
        return a.word == b.word

    n, m = len(first), len(other)
    best = np.zeros((n + 1, m + 1), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            best[i, j] = best[i + 1, j + 1] + 1 if same(i, j) else max(best[i + 1, j], best[i, j + 1])
    found, i, j = [], 0, 0
    while i < n and j < m:
        if same(i, j):
            found.append((first[i], other[j]))
            i, j = i + 1, j + 1
        elif best[i + 1, j] >= best[i, j + 1]:
            i += 1
        else:
            j += 1
    return found


def _partners(first: Sequence[Value], other: Sequence[Value], layers: dict[str, str]) -> set[tuple[int, int]]:
    """Outputs of matched units. A layer that applies its activation itself stands for the other's activation after it."""
    found = set()
    for i, a in enumerate(first):
        for j, b in enumerate(other):
            if layers.get(a.layer) == b.layer and a.layer in layers:
                if a.activation == b.activation:
                    found.add((i, j))
                elif not a.activation and i + 1 < len(first) and first[i + 1].word == b.word:
                    found.add((i + 1, j))
                elif not b.activation and j + 1 < len(other) and other[j + 1].word == a.word:
                    found.add((i, j + 1))
    return found
