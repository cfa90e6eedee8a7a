"""Where two runs part: the first look at which a tensor's statistics are not the same to the last bit."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sleuth.core.observation import Role
from sleuth.core.statistics import COLUMNS
from sleuth.store.reading import Run

CHUNK = 200

Look = tuple[int, dict[str, bytes]]  # step, the row of each tensor


class Parting(NamedTuple):
    step: int
    path: str | None  # None: they were the same at every look that both took, up to this step


def part(first: Path, second: Path, role: Role) -> Parting | None:
    """Only steps at which both were looked at can be compared; None: there are none."""
    last = None
    with Run(first) as one, Run(second) as other, one.guarded(), other.guarded():
        for (step, mine), (_, yours) in _shared(_looks(one, role), _looks(other, role)):
            shared = [path for path in mine if path in yours]
            differing = next((path for path in shared if mine[path] != yours[path]), None)
            if differing is not None:
                return Parting(step, differing)
            last = step if shared else last
    return None if last is None else Parting(last, None)


def _looks(run: Run, role: Role) -> Iterator[Look]:
    for step, rows in groupby(_rows(run, role), key=lambda row: row[1]):
        tensors: dict[str, bytes] = {}
        for _, _, paths, body in rows:
            table = np.frombuffer(body, dtype="<f4").reshape(-1, len(COLUMNS))
            tensors.update(zip(run.text(paths), (row.tobytes() for row in table), strict=True))
        yield step, tensors


def _rows(run: Run, role: Role) -> Iterator[tuple[int, int, int, bytes]]:
    number = 0
    while rows := run.frames_after(number, role, CHUNK):
        yield from rows
        number = rows[-1][0]


def _shared(ones: Iterator[Look], others: Iterator[Look]) -> Iterator[tuple[Look, Look]]:
    one, other = next(ones, None), next(others, None)
    while one is not None and other is not None:
        if one[0] == other[0]:
            yield one, other
            one, other = next(ones, None), next(others, None)
        elif one[0] < other[0]:
            one = next(ones, None)
        else:
            other = next(others, None)
