"""From observations to the curves, grids and histograms of a recording."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np

from sleuth.core.observation import Evaluation, Frame, Memory, Split, Step, Units
from sleuth.core.reading.activation import RECTIFIERS
from sleuth.core.recording.recording import Curve, Grid, Histograms, Table, empty_histograms, empty_table
from sleuth.core.statistics import COLUMNS, EXPONENT_BINS

# Of every step; a logged one of the same name must not run into it.
CURVES = ("loss", "lr", "gradient_norm", "seconds")

Points = Iterator[tuple[str, int, float]]


def curves_of(steps: Iterable[Step], evaluations: Iterable[Evaluation], memory: Iterable[Memory]) -> dict[str, Curve]:
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    observed: tuple[Step | Evaluation | Memory, ...] = (*steps, *evaluations, *memory)
    for seen in observed:
        for name, step, value in points_of(seen):
            found[name].append((step, value))
    return {plain_name(name, found): _curve(points) for name, points in found.items()}


def table_of_frames(frames: Sequence[Frame]) -> Table:
    if not frames:
        return empty_table()
    paths = tuple(dict.fromkeys(path for frame in frames for path in frame.paths))
    places = {path: place for place, path in enumerate(paths)}
    values = np.full((len(frames), len(paths), len(COLUMNS)), np.nan)
    for target, frame in zip(values, frames, strict=True):
        target[[places[path] for path in frame.paths]] = frame.table
    return Table(np.array([frame.step for frame in frames]), paths, COLUMNS, values)


def grid_of_silent(units: Iterable[Units]) -> Grid:
    """Several notes of a layer at a step, as a loop over time leaves them, count together: silent is who never spoke."""
    spoke: dict[tuple[int, str], np.ndarray] = {}
    for seen in units:
        if seen.activation not in RECTIFIERS or not len(seen.nonzero):
            continue
        key, now = (seen.step, seen.path), np.asarray(seen.nonzero) > 0
        before = spoke.get(key)
        spoke[key] = now if before is None or before.shape != now.shape else before | now
    steps = sorted({step for step, _ in spoke})
    paths = tuple(sorted({path for _, path in spoke}, key=_in_order))
    rows, columns = {s: i for i, s in enumerate(steps)}, {p: i for i, p in enumerate(paths)}
    values = np.full((len(steps), len(paths)), np.nan)
    for (step, path), those in spoke.items():
        values[rows[step], columns[path]] = 1.0 - those.mean()
    return Grid(np.array(steps, dtype=np.int64), paths, values)


def histograms_of(frames: Sequence[Frame]) -> Histograms:
    counted = [(frame, frame.exponents) for frame in frames if frame.exponents is not None]
    if not counted:
        return empty_histograms()
    paths = tuple(dict.fromkeys(path for frame, _ in counted for path in frame.paths))
    places = {path: place for place, path in enumerate(paths)}
    counts = np.zeros((len(counted), len(paths), EXPONENT_BINS), dtype=np.int64)
    for target, (frame, exponents) in zip(counts, counted, strict=True):
        target[[places[path] for path in frame.paths]] = exponents
    return Histograms(np.array([frame.step for frame, _ in counted]), paths, counts)


def _in_order(path: str) -> list[tuple[int, int | str]]:
    """Looks begin at another layer each time; by name, with numbers as numbers, it is mostly the order of the model."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in path.split(".")]


def plain_name(name: str, others: Container[str]) -> str:
    """What the loop computed itself and what the user said may have the same name; what was said keeps it."""
    plain = name.removeprefix("seen_")
    return name if plain in others else plain


def points_of(seen: Step | Evaluation | Memory) -> Points:
    """What one observation adds to the curves; a curve's name is final only when all are known: see `plain_name`."""
    match seen:
        case Step():
            return _of_step(seen)
        case Evaluation():
            return _of_evaluation(seen)
        case Memory():
            return _of_memory(seen)


def _of_step(step: Step) -> Points:
    front = f"optimiser{step.optimiser}." if step.optimiser else ""
    if step.heard or step.loss is not None:
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


def _of_memory(memory: Memory) -> Points:
    yield "process_bytes", memory.step, float(memory.bytes)


def _number(value: float | None) -> float:
    return np.nan if value is None or not np.isfinite(value) else value


def _curve(points: list[tuple[int, float]]) -> Curve:
    steps, values = zip(*points, strict=True)
    return Curve(np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64))
