"""The loss around the weights, along one or two random directions."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Parts
from sleuth.instruments.directions import filter_normalised, moved
from sleuth.instruments.laboratory import Training, opened
from sleuth.instruments.landscape_file import Progress, fingerprint
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result
from sleuth.probes.lab.one_batch import sample_count
from sleuth.probes.lab.probe import Lab

# Of the middle one: what lies lower by more is not just noise of the sums.
LOWER = 0.01


@dataclass(frozen=True)
class Landscape(Result):
    """`losses[i]` or `losses[i, j]` is the loss `distances[i]` along the first direction and `distances[j]` along the second,
    where 1 is as long as the weights themselves. Not finite where the loss is not."""

    distances: np.ndarray
    losses: np.ndarray
    seed: int
    samples: int | None
    notes: tuple[str, ...] = ()

    @property
    def dimensions(self) -> int:
        return self.losses.ndim

    @property
    def centre(self) -> float:
        return float(self.losses[(len(self.distances) // 2,) * self.dimensions])

    @property
    def sharpness(self) -> float:
        """How far the loss rises above that of the middle within half of the range, on the average, relative to it."""
        near = np.abs(self.distances) <= np.abs(self.distances).max() / 2
        part = self.losses[np.ix_(*([near] * self.dimensions))]
        finite = part[np.isfinite(part)]
        return float((finite.mean() - self.centre) / max(abs(self.centre), 1e-12)) if finite.size else math.inf

    def to_dict(self) -> dict[str, Any]:
        return plain(self)

    def __str__(self) -> str:
        finite = self.losses[np.isfinite(self.losses)]
        lines = [
            f"{' × '.join(map(str, self.losses.shape))} losses within ±{np.abs(self.distances).max():g} of the weights, "
            f"seed {self.seed}: {finite.min():.4g} to {finite.max():.4g}, {self.centre:.4g} in the middle"
        ]
        if finite.min() < self.centre - LOWER * abs(self.centre):
            lines.append("The weights do not stand at the lowest place: training is not over, or stands on a slope.")
        if finite.size < self.losses.size:
            lines.append(f"{self.losses.size - finite.size} losses are not finite.")
        return "\n".join((*lines, *self.notes))

    def plot(self) -> Any:
        from sleuth.instruments.landscape_view import draw

        return draw(self)


def landscape(
    model: Any,
    data: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    dimensions: int = 2,
    points: int = 21,
    distance: float = 1.0,
    batches: int = 1,
    seed: int = 0,
    file: str | Path | None = None,
    progress: bool | None = None,
) -> Landscape:
    """The loss on a grid around the weights, in evaluation mode, as the mean over `batches` batches.

    Directions are random, the same for the same `seed`, and normalised filter by filter (Li et al. 2018); biases and scales stay.
    With `file`, such as "landscape.npz", what is done is kept there: call it again after an interruption and it goes on.
    """
    if dimensions not in (1, 2) or points < 3 or points % 2 == 0:
        raise UnusableInput(
            f"dimensions={dimensions} must be 1 or 2, and points={points} odd, so that the middle is the model itself."
        )
    if batches < 1 or not distance > 0:
        raise UnusableInput(f"batches={batches} and distance={distance:g} must be above zero.")
    subject = Training(model, data, loss, optimizer, step, split).subject
    # No step is taken: the optimiser's state would only be copied at every point.
    training = Training(replace(subject, optimizer=None), progress=progress)
    with opened(training, batches, loss=True) as lab:
        distances = np.linspace(-distance, distance, points)
        survey = Survey(lab, dimensions, seed)
        key = fingerprint(survey.weights, survey.arrays(), distances, dimensions, seed)
        losses = _survey(survey, distances, Progress(file, key, (points,) * dimensions), lab.progress)
        return Landscape(distances, losses, seed, survey.samples, tuple(lab.notes))


def _survey(survey: "Survey", distances: np.ndarray, done: Progress, tell: Callable[[str], None]) -> np.ndarray:
    places = list(np.ndindex(*done.losses.shape))
    with done:
        for number, place in enumerate(places):
            if done.known[place]:
                continue
            tell(f"Loss {number + 1} of {len(places)}")
            done.put(place, survey.at(tuple(float(distances[i]) for i in place)))
    return done.losses


class Survey:
    def __init__(self, lab: Lab, dimensions: int, seed: int) -> None:
        self._lab = lab
        values = lab.adapter.values
        self.weights = {path: np.array(values(lab.bench.parameter(path))) for path in lab.bench.paths()}
        if not self.weights:
            raise UnusableInput("no parameter of the model is trainable, so there is nothing to move.")
        generator = np.random.default_rng(seed)
        self._directions = [filter_normalised(self.weights, generator) for _ in range(dimensions)]
        self._sizes = [sample_count(lab, batch) for batch in lab.train.batches]
        self._start = lab.bench.snapshot()

    @property
    def samples(self) -> int | None:
        return None if any(size is None for size in self._sizes) else sum(size or 0 for size in self._sizes)

    def arrays(self) -> list[np.ndarray]:
        from sleuth.core.runtime.tree import leaves

        adapter = self._lab.adapter
        return [adapter.values(a) for batch in self._lab.train.batches for _, a in leaves(batch.raw, adapter.is_array)]

    def at(self, distances: tuple[float, ...]) -> float:
        bench = self._lab.bench
        bench.restore(self._start)  # a loss that draws random numbers draws the same ones everywhere
        bench.set_training(False)
        for path, values in moved(self.weights, self._directions, distances).items():
            bench.write(path, values)
        losses = [self._loss(batch) for batch in self._lab.train.batches]
        return float(np.average(losses, weights=self._weighing()))

    def _loss(self, batch: Parts) -> float:
        return self._lab.bench.loss(batch)

    def _weighing(self) -> list[int]:
        """By samples, so that a short last batch counts for less."""
        return [1 if self.samples is None else size or 1 for size in self._sizes]
