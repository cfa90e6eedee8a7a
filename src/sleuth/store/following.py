"""A run that goes on: each question reads only what was written since the one before, and memory stays bounded."""

import threading
from array import array
from collections import defaultdict
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.core.contract.scene import Scene
from sleuth.core.observation import Evaluation, Memory, Role, Step
from sleuth.core.recording.recorded import plain_name, points_of
from sleuth.core.recording.recording import Curve, Grid, Histograms, Recording, Table
from sleuth.core.statistics import COLUMNS
from sleuth.store.arrays import StoredRun
from sleuth.store.condensed import Condensed
from sleuth.store.reading import Run

# More columns of a heat map cannot be told apart on a screen.
MOST_STRETCHES = 512
# Frames that are in memory at a time while a long run is read for the first time.
CHUNK = 1000


class FollowedRun(Recording):
    """Statistics of long runs are condensed: of each stretch of steps, every tensor's most unusual row stays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stored = StoredRun(path)
        self._lock = threading.Lock()
        self._seen = 0  # the number of the last step that was read
        self._logged = 0  # and that of the last note
        self._points: dict[str, tuple[array[int], array[float]]] = defaultdict(lambda: (array("q"), array("d")))
        self._tables: dict[Role, Condensed] = defaultdict(lambda: Condensed(MOST_STRETCHES))
        self._frames: dict[Role, int] = defaultdict(int)

    def curves(self) -> dict[str, Curve]:
        with self._lock:
            self._read_points()
            return {
                plain_name(name, self._points): Curve(np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64))
                for name, (steps, values) in self._points.items()
            }

    def statistics(self, role: Role) -> Table:
        with self._lock, Run(self.path) as run, run.guarded():
            while rows := run.frames_after(self._frames[role], role, CHUNK):
                self._take(run, role, rows)
            return self._tables[role].table()

    def silent(self) -> Grid:
        return self._stored.silent()

    def histograms(self, role: Role, most: int) -> Histograms:
        return self._stored.histograms(role, most)

    def scenes(self) -> tuple[int, ...]:
        return self._stored.scenes()

    def scene(self, number: int) -> Scene:
        return self._stored.scene(number)

    def _read_points(self) -> None:
        with Run(self.path) as run, run.guarded():
            for number, step in run.steps_after(self._seen):
                self._add(step)
                self._seen = number
            for number, note in run.notes_after(self._logged, ("Evaluation", "Memory")):
                self._add(note)
                self._logged = number

    def _add(self, seen: Step | Evaluation | Memory) -> None:
        for name, step, value in points_of(seen):
            steps, values = self._points[name]
            steps.append(step)
            values.append(value)

    def _take(self, run: Run, role: Role, rows: list[Any]) -> None:
        """Frames in a row are mostly of the same tensors: these are read as one array."""
        for paths, group in groupby(rows, key=lambda row: row[2]):
            numbers, steps, _, bodies = zip(*group, strict=True)
            names = run.text(paths)
            packed = np.frombuffer(b"".join(bodies), dtype="<f4").reshape(len(steps), len(names), len(COLUMNS))
            self._tables[role].add(np.array(steps, dtype=np.int64), names, packed)
            self._frames[role] = numbers[-1]
