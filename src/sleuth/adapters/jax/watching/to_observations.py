"""What was said inside a step, as observations."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.common.axis_sums import axis_sums, exp_sums
from sleuth.adapters.jax.arrays import array_facts, to_numpy
from sleuth.adapters.jax.watching.inner_values import Story
from sleuth.adapters.jax.watching.measuring import table
from sleuth.adapters.jax.words import LOSSES
from sleuth.core.observation import Argument, Frame, LossCall, Observation, Predictions, Role, Split, Units
from sleuth.core.reading.activation import ENDS


def told(step: int, story: Story, telling: dict[str, Any], value: float | None) -> Iterator[Observation]:
    if story.layers:
        elements = [int(n) for n in np.asarray(telling["elements"])]
        rows = table(np.asarray(telling["sizes"]), np.asarray(telling["counts"]), elements)
        yield Frame(step, Role.ACTIVATION, story.layers, rows)
    for (path, activation, samples), values in zip(story.units, telling["units"], strict=True):
        nonzero, low, high, pinned = (to_numpy(v) for v in values)
        share = float(pinned) if activation in ENDS else None
        yield Units(step, path, "activation", activation, samples, nonzero, low, high, share)
    if story.loss is not None:
        yield from _loss(step, story, telling, value)


def _loss(step: int, story: Story, telling: dict[str, Any], value: float | None) -> Iterator[Observation]:
    scores, labels = to_numpy(telling["scores"]), to_numpy(telling["labels"])
    family = LOSSES[story.loss or ""]
    sides = (("output", scores), ("target", labels))
    arguments = tuple(
        Argument(array_facts(role, array), role, axis_sums=axis_sums(array), exp_sums=exp_sums(array)) for role, array in sides
    )
    if story.producer is not None:
        made = replace(arguments[0], producer=story.producer, producer_location=story.producer_place)
        arguments = (made, *arguments[1:])
    yield LossCall(story.loss or "", family, value, arguments, reduction="mean", location=story.place, returned=value)
    classes = labels.argmax(-1) if labels.shape == scores.shape and scores.ndim == 2 else labels
    if family == "cross-entropy" and scores.ndim == 2 and classes.ndim == 1 and classes.dtype.kind in "iu":
        named = scores.argmax(1)
        yield Predictions(
            step,
            Split.TRAIN,
            scores.shape[1],
            {int(k): n for k, n in Counter(named.tolist()).items()},
            {int(k): n for k, n in Counter(classes.tolist()).items()},
            int((named == classes).sum()),
            story.place,
        )
