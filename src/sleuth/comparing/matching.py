"""Which unit of one model is which of the other."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.comparing.unit import Unit
from sleuth.core.errors import UnusableInput

# What one framework has as one tensor another has as two.
SPLIT = ("bias_x", "bias_h", "bias_n", "mean", "variance")


@dataclass(frozen=True)
class Match:
    pairs: tuple[tuple[Unit, Unit], ...]
    first_only: tuple[Unit, ...]
    other_only: tuple[Unit, ...]
    guessed: bool = False  # several units are of one size, and only their order told them apart


def match(first: Sequence[Unit], other: Sequence[Unit], names: Mapping[str, str] | None = None) -> Match:
    """By the names that the user gives, then by equal names, then by size and order."""
    mine, yours = list(first), list(other)
    pairs: list[tuple[Unit, Unit]] = []

    def take(a: Unit, b: Unit) -> None:
        pairs.append((a, b))
        mine.remove(a)
        yours.remove(b)

    for one, two in (names or {}).items():
        take(_named(mine, one), _named(yours, two))
    for a in list(mine):
        same = [b for b in yours if b.path == a.path and a.path and _size(a) == _size(b)]
        if len(same) == 1:
            take(a, same[0])
    guessed = False
    for a in list(mine):
        # Frameworks that sort their names put the key before the query.
        same = [b for b in yours if a.part and b.part == a.part and _size(a) == _size(b)]
        if same:
            take(a, same[0])
    for size in dict.fromkeys(_size(a) for a in mine):
        alike, others = _ordered(mine, size), _ordered(yours, size)
        guessed |= len(alike) > 1 and len(others) > 1
        for a, b in zip(alike, others, strict=False):
            take(a, b)
    order = {id(unit): i for i, unit in enumerate(first)}
    return Match(tuple(sorted(pairs, key=lambda p: order[id(p[0])])), tuple(mine), tuple(yours), guessed)


def _named(units: list[Unit], path: str) -> Unit:
    found = next((u for u in units if u.path == path or path in u.tensors.values()), None)
    if found is None:
        raise UnusableInput(f"names= speaks of {path!r}; there are: {', '.join(u.path or '(the model)' for u in units)}.")
    return found


def _ordered(units: Sequence[Unit], size: tuple[int, ...]) -> list[Unit]:
    """In the order of definition; a framework that sorts its names puts 10 before 2."""
    alike = [u for u in units if _size(u) == size]
    numbered = [_numbers(u) for u in alike]
    stems = {stem for stem, _ in numbered}
    if len(stems) == 1 and all(n for _, n in numbered):
        return [u for _, u in sorted(zip(numbered, alike, strict=True), key=lambda pair: pair[0][1])]
    return alike


def _numbers(unit: Unit) -> tuple[str, tuple[int, ...]]:
    name = unit.path or next(iter(unit.tensors.values()))
    return re.sub(r"\d+", "#", name), tuple(int(n) for n in re.findall(r"\d+", name))


def _size(unit: Unit) -> tuple[int, ...]:
    """How many numbers each of its tensors holds: the same in every layout."""
    sizes: dict[str, int] = defaultdict(int)
    for role, shape in unit.shapes.items():
        if not role.startswith(SPLIT):
            sizes["bias" if role.startswith("bias") else role] += int(np.prod(shape, dtype=np.int64))
    recurrent = any(role.startswith("weight_h") for role in unit.shapes)
    return tuple(sorted(n for role, n in sizes.items() if not (recurrent and role == "bias")))
