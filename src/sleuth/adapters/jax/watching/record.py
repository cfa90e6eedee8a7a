"""What one step leaves behind; turned into observations off the training thread."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from sleuth.adapters.common.axis_sums import axis_sums, exp_sums
from sleuth.adapters.jax.arrays import array_facts, to_numpy
from sleuth.adapters.jax.watching.channel import Lane
from sleuth.adapters.jax.watching.inner_values import Story, Telling
from sleuth.adapters.jax.watching.measuring import table
from sleuth.adapters.jax.watching.modes import Active, calls_of
from sleuth.adapters.jax.watching.unused_results import Discarded
from sleuth.adapters.jax.words import LOSSES
from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.listening.steps import build_step, mean_loss
from sleuth.core.observation import Argument, Frame, LossCall, Observation, Predictions, Role, Split, Units
from sleuth.core.reading.activation import ENDS

# The rate of every so-many-th step is told, whether it is looked at or not.
RATED = 8

Measured = tuple[Any, Any]  # sizes and counts, it may be still on the device


@dataclass
class Look:
    gradients: Measured  # the weights' behind them
    update: Measured | None = None
    rate: Any = None
    count: Any = None  # of steps that the optimiser remembers
    active: Active | None = None  # which layers are in training mode
    story: Story | None = None
    telling: Telling | None = None


class Record(NamedTuple):
    step: int
    optimiser: int
    losses: Sequence[Any]  # scalars, it may be still on the device; empty: not heard
    seconds: float
    lane: Lane
    order: Sequence[int]
    look: Look | None = None
    notes: tuple[Note, ...] = ()  # of the recorders

    @property
    def loss(self) -> float | None:
        """Waits for the device."""
        return mean_loss(float(np.asarray(loss)) for loss in self.losses)

    @property
    def size(self) -> int:
        """Bytes that wait with it."""
        if self.look is None:
            return 0
        held = (self.look.gradients, self.look.update, self.look.telling)
        return sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree_util.tree_leaves(held))


@dataclass
class Track:
    """One lane of a training, between two of its steps."""

    number: int
    lane: Lane
    order: list[int]
    losses: list[Any] = field(default_factory=list)
    gradients: int = 0  # taken since the last step
    look: Look | None = None
    held: list[Any] | None = None  # the weights of a step that was looked at, until the next one shows what became of them
    hears_updates: bool = False
    discarded: Discarded = field(default_factory=Discarded)


def observations(
    record: Record, rate_at: Callable[[int], float | None] | None = None, *, training: bool = True, ahead: int = 0
) -> Iterator[Observation]:
    """`rate_at`: the rate of a step by its count, where the step does not tell it itself. `ahead`: so far the count of the
    optimiser is ahead of that of the steps."""
    look, loss = record.look, record.loss
    tables: dict[Role, np.ndarray] = {}
    # A schedule takes a while to be asked.
    rate = rate_at(record.step + ahead) if rate_at is not None and look is None and record.step % RATED == 0 else None
    if look is not None:
        tables = _tables(record, look)
        paths = tuple(record.lane.paths[i] for i in record.order)
        for role, rows in tables.items():
            yield Frame(record.step, role, paths, rows)
        rate = None if look.rate is None else float(np.asarray(look.rate))
        if rate is None and rate_at is not None:
            rate = rate_at(record.step if look.count is None else int(np.asarray(look.count)))
        if look.story is not None and look.telling is not None:
            alone = len(record.losses) == 1 and loss is not None and np.isfinite(loss)
            yield from _told(record.step, look.story, look.telling, loss if alone else None)
    yield build_step(
        record.step,
        loss,
        lr=rate,
        gradients=tables.get(Role.GRADIENT),
        calls=calls_of(look.active) if look is not None and look.active is not None else (),
        optimiser=record.optimiser,
        training=training,
        seconds=record.seconds,
    )


def _tables(record: Record, look: Look) -> dict[Role, np.ndarray]:
    elements = [int(np.prod(shape, dtype=np.int64)) for shape in record.lane.shapes]
    count, order = len(elements), list(record.order)
    sizes, counts = (np.asarray(a) for a in look.gradients)
    tables = {
        Role.GRADIENT: table(sizes[:count], counts[:count], elements)[order],
        Role.WEIGHT: table(sizes[count:], counts[count:], elements)[order],
    }
    if look.update is not None:
        tables[Role.UPDATE] = table(np.asarray(look.update[0]), np.asarray(look.update[1]), elements)[order]
    return tables


def _told(step: int, story: Story, telling: dict[str, Any], value: float | None) -> Iterator[Observation]:
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
