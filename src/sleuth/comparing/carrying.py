"""One model's weights carried into the other."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sleuth.comparing.layout import Layout, Tensors, from_common, layouts, to_common
from sleuth.comparing.matching import Match
from sleuth.comparing.side import Side
from sleuth.comparing.unit import Unit
from sleuth.core.contract.adapter import Bench, CheckpointState


@dataclass(frozen=True)
class Twin:
    """A unit of one model and the one that stands for it in the other."""

    first: Unit
    other: Unit
    layout: tuple[Layout, Layout]
    why_not: str | None = None  # its weights cannot be carried

    def common(self, tensors: tuple[Tensors, Tensors]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        return to_common(self.first, self.layout[0], tensors[0]), to_common(self.other, self.layout[1], tensors[1])


def twins(match: Match, same_framework: bool) -> list[Twin]:
    found = layouts(match.pairs, same_framework)
    return [Twin(a, b, layout, _why_not(a, b)) for (a, b), layout in zip(match.pairs, found, strict=True)]


def _why_not(a: Unit, b: Unit) -> str | None:
    if "Transpose" in a.kind + b.kind and a.kind != b.kind:
        return "transposed convolutions lie differently in every framework"
    if a.family == b.family == "recurrent" and ("weight_h" not in a.tensors or "weight_h" not in b.tensors):
        return "its gates cannot be told apart"
    return None


def read(side: Side, unit: Unit, bench: Bench | None = None) -> dict[str, np.ndarray]:
    bench = bench or side.bench
    held = side.adapter.statistics(bench) if unit.statistics and isinstance(side.adapter, CheckpointState) else {}
    return {
        role: np.array(side.adapter.values(held[path]), np.float64) if role in unit.statistics else side.value(path, bench)
        for role, path in unit.tensors.items()
    }


def carry(first: Side, other: Side, pairs: list[Twin]) -> list[str]:
    """Why a unit's weights did not go over, for each that did not."""
    problems = []
    for twin in pairs:
        if twin.why_not is not None:
            problems.append(f"{twin.first.path}: {twin.why_not}")
            continue
        try:
            own = from_common(twin.other, twin.layout[1], to_common(twin.first, twin.layout[0], read(first, twin.first)))
            _write(other, twin.other, own)
        except Exception as error:  # a shape that fits by its size alone, a bench that cannot be written to
            problems.append(f"{twin.first.path or 'the model'}: {type(error).__name__}: {error}")
    return problems


def _write(side: Side, unit: Unit, tensors: Mapping[str, np.ndarray]) -> None:
    for role, values in tensors.items():
        if role not in unit.statistics:
            side.write(unit.tensors[role], values)
        elif isinstance(side.adapter, CheckpointState):
            side.adapter.write_statistic(side.bench, unit.tensors[role], values)


def turned_over(pairs: list[Twin]) -> list[Twin]:
    """The next reading of every weight whose shape does not tell which way it lies."""
    return [replace(t, layout=(t.layout[0], t.layout[1].turned())) for t in pairs]


def with_columns(twin: Twin, columns: tuple[np.ndarray | None, np.ndarray | None]) -> Twin:
    first, other = twin.layout
    return replace(twin, layout=(replace(first, columns=columns[0]), replace(other, columns=columns[1])))
