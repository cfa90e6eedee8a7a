"""The curves and statistics of a run as NumPy arrays, at full resolution."""

from pathlib import Path

import numpy as np

from sleuth.core.contract.scene import Scene
from sleuth.core.observation import Role
from sleuth.core.recording.recorded import curves_of, grid_of_silent, histograms_of
from sleuth.core.recording.recording import Curve, Grid, Histograms, Recording, Table, empty_table, evenly
from sleuth.core.statistics import COLUMNS
from sleuth.store.reading import Run
from sleuth.store.rows import table_of
from sleuth.store.scenes import read_scene, scenes_of


class StoredRun(Recording):
    """Opens the file for each question: a run that is still being written is seen as it is at that moment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def curves(self) -> dict[str, Curve]:
        with Run(self.path) as run, run.guarded():
            return curves_of(run.steps(), run.logged("Evaluation"), run.logged("Memory"))

    def silent(self) -> Grid:
        with Run(self.path) as run, run.guarded():
            return grid_of_silent(run.logged("Units"))

    def histograms(self, role: Role, most: int) -> Histograms:
        with Run(self.path) as run, run.guarded():
            known = "FROM frames WHERE role = ? AND exponents IS NOT NULL"
            numbers = [number for (number,) in run.rows(f"SELECT number {known} ORDER BY number", role.value)]
            frames = [run.frame(numbers[place]) for place in evenly(len(numbers), most)]
            return histograms_of(frames)

    def scenes(self) -> tuple[int, ...]:
        return scenes_of(self.path)

    def scene(self, number: int) -> Scene:
        return read_scene(self.path, number)

    def statistics(self, role: Role) -> Table:
        with Run(self.path) as run, run.guarded():
            rows = run.rows("SELECT step, paths, body FROM frames WHERE role = ? ORDER BY number", role.value)
            lists = {number: run.text(number) for number in dict.fromkeys(number for _, number, _ in rows)}
            if not rows:
                return empty_table()
            paths = tuple(dict.fromkeys(path for listed in lists.values() for path in listed))
            places = {path: place for place, path in enumerate(paths)}
            columns = {number: [places[path] for path in listed] for number, listed in lists.items()}
            values = np.full((len(rows), len(paths), len(COLUMNS)), np.nan)
            for target, (_, number, body) in zip(values, rows, strict=True):
                target[columns[number]] = table_of(body)
        return Table(np.array([step for step, _, _ in rows]), paths, COLUMNS, values)
