"""Two recorded runs: the first step and the first tensor where they part."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.store.following import FollowedRun
from sleuth.store.parting import Parting, part
from sleuth.store.partings import LOSSES, ROLES, first_difference, on_shared_steps, tell
from sleuth.store.reading import files_of

SAME, DIFFERS, UNKNOWN = "same", "differs", "unknown"


@dataclass(frozen=True)
class RunComparison:
    """To the last bit, at every step at which both runs were looked at."""

    first: str
    other: str
    status: str
    step: int | None  # the first at which anything differs
    tensors: Mapping[str, Parting]  # activation, gradient, update, weight → where; a path of None: the same up to that step
    losses: Mapping[str, tuple[int, float, float] | None]  # the first step that differs, and both values; None: the same
    headline: str
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "other": self.other,
            "status": self.status,
            "step": self.step,
            "tensors": {role: found._asdict() for role, found in self.tensors.items()},
            "losses": {name: None if at is None else [at[0], *map(_plain, at[1:])] for name, at in self.losses.items()},
            "headline": self.headline,
            "sentences": list(self.sentences),
        }

    def __str__(self) -> str:
        return "\n".join([f"{self.first} and {self.other}", self.headline, *(f"  {text}" for text in self.sentences)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def compare_runs(first: str | Path, other: str | Path) -> RunComparison:
    """`first` and `other`: folders of runs, or the files of processes."""
    files = files_of(Path(first))[0], files_of(Path(other))[0]
    curves = FollowedRun(files[0]).curves(), FollowedRun(files[1]).curves()
    told = tell(curves, files)
    tensors = {role.value: found for role in ROLES if (found := part(*files, role)) is not None}
    losses = {
        name: _loss(*on_shared_steps(curves[0][name], curves[1][name])) for name in LOSSES if all(name in c for c in curves)
    }
    steps = [found.step for found in tensors.values() if found.path is not None]
    steps += [at[0] for at in losses.values() if at is not None]
    shared = bool(tensors) or any(len(on_shared_steps(curves[0][name], curves[1][name])[0]) for name in losses)
    status = DIFFERS if steps else SAME if shared else UNKNOWN
    return RunComparison(
        str(first), str(other), status, min(steps, default=None), tensors, losses, told.headline, tuple(told.sentences)
    )


def _loss(steps: np.ndarray, mine: np.ndarray, yours: np.ndarray) -> tuple[int, float, float] | None:
    place = first_difference(mine, yours)
    return None if place is None else (int(steps[place]), float(mine[place]), float(yours[place]))


def _plain(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
