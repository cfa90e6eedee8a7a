"""What one step leaves behind; turned into observations off the training thread."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sleuth.adapters.jax.watching.channel import Lane
from sleuth.adapters.jax.watching.discarded_updates import Discarded
from sleuth.adapters.jax.watching.inner_values import Story, Telling
from sleuth.adapters.jax.watching.measuring import table
from sleuth.adapters.jax.watching.modes import Active, Validation
from sleuth.adapters.jax.watching.to_observations import told
from sleuth.core.observation import Frame, Observation, Role, Step
from sleuth.core.statistics import norm_of

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
    notes: tuple[Observation, ...] = ()
    validation: Validation | None = None  # that came before it


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
    record: Record,
    rate_at: Callable[[int], float | None] | None = None,
    calls: tuple[str, ...] = (),
    *,
    training: bool = True,
    ahead: int = 0,
) -> Iterator[Observation]:
    """`rate_at`: the rate of a step by its count, where the step does not tell it itself. `ahead`: so far the count of the
    optimiser is ahead of that of the steps."""
    yield from record.notes
    norm = None
    # A schedule takes a while to be asked.
    rate = rate_at(record.step + ahead) if rate_at is not None and record.look is None and record.step % RATED == 0 else None
    if record.look is not None:
        tables = _tables(record, record.look)
        norm = norm_of(tables[Role.GRADIENT])
        paths = tuple(record.lane.paths[i] for i in record.order)
        for role, rows in tables.items():
            yield Frame(record.step, role, paths, rows)
        rate = None if record.look.rate is None else float(np.asarray(record.look.rate))
        if rate is None and rate_at is not None:
            rate = rate_at(record.step if record.look.count is None else int(np.asarray(record.look.count)))
        yield from _told(record, record.look)
    values = [float(np.asarray(loss)) for loss in record.losses]
    mean = sum(values) / len(values) if values else None
    yield Step(
        record.step,
        mean if mean is not None and np.isfinite(mean) else None,
        rate,
        gradient_norm=norm,
        optimiser=record.optimiser,
        calls=calls,
        training=training,
        seconds={"step": record.seconds},
        heard=bool(values),
    )


def _told(record: Record, look: Look) -> Iterator[Observation]:
    if look.story is None or look.telling is None:
        return
    losses = [float(np.asarray(loss)) for loss in record.losses]
    value = losses[0] if len(losses) == 1 and np.isfinite(losses[0]) else None
    yield from told(record.step, look.story, look.telling, value)


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
