"""The curves and statistics of a run as NumPy arrays, at full resolution."""

from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path

import numpy as np

from sleuth.core.observation import Evaluation, Role, Split, Step
from sleuth.core.recording import Curve, Recording, Table, empty_table
from sleuth.core.scene import Scene
from sleuth.core.statistics import COLUMNS
from sleuth.store.reading import Run
from sleuth.store.rows import table_of
from sleuth.store.scenes import read_scene, scenes_of

# Of every step; a logged one of the same name must not run into it.
CURVES = ("loss", "lr", "gradient_norm", "clipped_norm", "memory_bytes", "seconds")

Points = Iterator[tuple[str, int, float]]


class StoredRun(Recording):
    """Opens the file for each question: a run that is still being written is seen as it is at that moment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def curves(self) -> dict[str, Curve]:
        found: dict[str, list[tuple[int, float]]] = defaultdict(list)
        with Run(self.path) as run, run.guarded():
            for points in (*map(_of_step, run.steps()), *map(_of_evaluation, run.logged("Evaluation"))):
                for name, step, value in points:
                    found[name].append((step, value))
        return {_plain_name(name, found): _curve(points) for name, points in found.items()}

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


def _plain_name(name: str, others: Container[str]) -> str:
    """What the loop computed itself and what the user said may have the same name; what was said keeps it."""
    plain = name.removeprefix("seen_")
    return name if plain in others else plain


def _of_step(step: Step) -> Points:
    front = f"optimiser{step.optimiser}." if step.optimiser else ""
    yield f"{front}loss", step.step, _number(step.loss)
    for name in CURVES[1:-1]:
        if (value := getattr(step, name)) is not None:
            yield front + name, step.step, value
    for phase, seconds in step.seconds.items():
        yield f"{front}seconds" if phase == "step" else f"{front}seconds.{phase}", step.step, seconds


def _of_evaluation(evaluation: Evaluation) -> Points:
    for name, value in evaluation.metrics.items():
        front = "val_" if evaluation.split is Split.VALIDATION else "logged_" if name in CURVES else ""
        yield ("" if evaluation.logged else "seen_") + front + name, evaluation.step, _number(value)


def _number(value: float | None) -> float:
    return np.nan if value is None or not np.isfinite(value) else value


def _curve(points: list[tuple[int, float]]) -> Curve:
    steps, values = zip(*points, strict=True)
    return Curve(np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64))
