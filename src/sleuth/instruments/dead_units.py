"""Units that stay silent over data: zero for every sample, or the same for every sample."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from sleuth.core.contract.workload import Heard
from sleuth.core.errors import UnusableInput
from sleuth.core.reading.activation import RECTIFIERS
from sleuth.instruments.laboratory import MOST_BATCHES, Training, one_pass, opened, with_layer_values
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Viewed
from sleuth.probes.lab.probe import Lab

# A spread below this share of the largest value is none.
NO_SPREAD = 1e-6


@dataclass(frozen=True)
class LayerUnits:
    """Of one activation. `active` is the share of values that are not zero, unit by unit."""

    path: str
    activation: str
    units: int
    dead: tuple[int, ...]  # zero throughout
    constant: tuple[int, ...]  # the same value throughout, dead ones left out
    active: np.ndarray = field(repr=False)

    @property
    def dead_share(self) -> float:
        return len(self.dead) / self.units if self.units else 0.0


@dataclass(frozen=True)
class DeadUnits(Viewed):
    layers: tuple[LayerUnits, ...]
    samples: int
    notes: tuple[str, ...] = ()

    @property
    def dead(self) -> int:
        return sum(len(layer.dead) for layer in self.layers)

    def __getitem__(self, path: str) -> LayerUnits:
        found = next((layer for layer in self.layers if layer.path == path), None)
        if found is None:
            raise KeyError(path)
        return found

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


def dead_units(
    model: Any,
    data: Any = None,
    *,
    batches: int = MOST_BATCHES,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    progress: bool | None = None,
) -> DeadUnits:
    """Which units of which activations never fire, over at most `batches` batches, in evaluation mode.

    A unit is a channel of a convolution or a column of a linear layer. Only `step` needs a loss: the model alone is run.
    """
    training = Training(model, data, loss, optimizer, step, split, progress)
    with opened(training, batches=0) as lab:
        counts = Counts(lab)
        lab.bench.set_training(False)
        with with_layer_values(lab).layer_values(lab.bench, lambda path, usual: usual, counts.value):
            for place, batch in enumerate(islice(one_pass(lab), batches)):
                lab.progress(f"Batch {place + 1}")
                counts.begin()
                if lab.subject.step is not None:
                    lab.bench.loss(batch)
                else:
                    lab.bench.forward(batch.inputs)
        if not counts.layers:
            raise UnusableInput("the model has no activation such as ReLU, tanh or GELU, so no unit can be dead.")
        return DeadUnits(tuple(counts.result()), counts.samples, tuple(lab.notes))


class Counts:
    def __init__(self, lab: Lab) -> None:
        self.layers: dict[str, Tally] = {}
        self.samples = 0
        self._lab = lab
        self._counted = True

    def begin(self) -> None:
        self._counted = False

    def value(self, heard: Heard, array: Any) -> None:
        if not self._counted:
            self._counted, self.samples = True, self.samples + array.shape[0]
        if not heard.activation or array.ndim < 2:
            return
        values = np.moveaxis(self._lab.adapter.values(array), heard.unit_axis, -1)
        values = values.reshape(-1, values.shape[-1])
        path = heard.path.partition("#")[0]  # every call of one and the same activation
        tally = self.layers.setdefault(path, Tally(heard.activation, values.shape[-1]))
        if tally.units == values.shape[-1]:
            tally.add(values)
        else:  # one object for layers of different widths: each width is a layer of its own
            self.layers.setdefault(heard.path, Tally(heard.activation, values.shape[-1])).add(values)

    def result(self) -> list[LayerUnits]:
        return [tally.layer(path) for path, tally in self.layers.items()]


class Tally:
    def __init__(self, activation: str, units: int) -> None:
        self.activation, self.units = activation, units
        self._rows = 0
        self._nonzero = np.zeros(units, dtype=np.int64)
        self._low, self._high = np.full(units, np.inf), np.full(units, -np.inf)

    def add(self, values: np.ndarray) -> None:
        self._rows += len(values)
        self._nonzero += np.count_nonzero(values, axis=0)
        self._low = np.minimum(self._low, values.min(axis=0))
        self._high = np.maximum(self._high, values.max(axis=0))

    def layer(self, path: str) -> LayerUnits:
        off = self._nonzero == 0 if self.activation in RECTIFIERS else np.zeros(self.units, dtype=bool)
        same = (self._high - self._low) <= NO_SPREAD * np.maximum(np.abs(self._high), np.abs(self._low))
        same &= ~off & (self._rows > 1)
        dead, constant = (tuple(np.flatnonzero(mask).tolist()) for mask in (off, same))
        return LayerUnits(path, self.activation, self.units, dead, constant, self._nonzero / max(self._rows, 1))
