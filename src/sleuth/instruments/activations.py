"""Values inside a model, and the gradients of the loss by them: statistics, warnings and the values themselves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from sleuth.core.contract.workload import Heard
from sleuth.core.errors import UnusableInput
from sleuth.core.reading.activation import pinned_share
from sleuth.core.statistics import Statistics, merge
from sleuth.instruments.laboratory import Training, opened, with_layer_values
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Viewed
from sleuth.probes.lab.probe import Lab

# Values of the first batch are kept up to so many bytes in all.
KEPT_BYTES = 256 << 20
EXTREME = 1e3
NO_SPREAD = 1e-6
# A rectifier is off for half of what it hears; for nearly all is a sign of dead units.
MOSTLY_OFF = 0.9
MOSTLY_PINNED = 0.5


@dataclass(frozen=True)
class LayerActivation:
    """Of one layer's output over all batches. Its second call is path#2; part of a tuple or dict is path[0], path[hidden]."""

    path: str
    kind: str
    activation: str  # "relu", …; "" where the layer is none
    shape: tuple[int, ...]  # of the first batch
    unit_axis: int
    statistics: Statistics
    gradient: Statistics | None  # of the loss by this output; None: none came back
    pinned: float | None  # share of values at the ends of a bounded activation
    values: np.ndarray | None = field(repr=False, default=None)  # of the first batch; None: too many to keep
    gradient_values: np.ndarray | None = field(repr=False, default=None)
    warnings: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        return self.statistics.mean

    @property
    def std(self) -> float:
        return self.statistics.std

    @property
    def sparsity(self) -> float:
        return self.statistics.zero_share


@dataclass(frozen=True)
class ActivationReport(Viewed):
    layers: tuple[LayerActivation, ...]  # in the order of calls
    samples: int | None
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{layer.path}: {w}" for layer in self.layers for w in layer.warnings)

    def __getitem__(self, path: str) -> LayerActivation:
        found = next((layer for layer in self.layers if layer.path == path), None)
        if found is None:
            raise KeyError(path)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Without the values themselves, which are arrays: `report["fc1"].values`."""
        left_out = ("values", "gradient_values")
        layers = [{k: v for k, v in vars(layer).items() if k not in left_out} for layer in self.layers]
        return plain({"layers": layers, "samples": self.samples, "notes": self.notes})


def activations(
    model: Any,
    data: Any = None,
    *,
    layers: str | list[str] | None = None,
    operations: bool = False,
    batches: int = 1,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    progress: bool | None = None,
) -> ActivationReport:
    """What the layers put out and, where a loss is given, the gradients that come back to them.

    `layers`: names or patterns such as "encoder.*"; by default every layer without parts, and activations written as functions.
    `operations=True` also hears each operation, named after its layer: "block.softmax". The model runs as a copy, in the mode
    that it is in.
    """
    training = Training(model, data, loss, optimizer, step, split, progress)
    with opened(training, batches) as lab:
        patterns = [layers] if isinstance(layers, str) else layers
        notes = Notes(lab)

        def wanted(path: str, usual: bool) -> bool:
            return usual or operations if patterns is None else any(fnmatchcase(path, p) for p in patterns)

        backward = training.has_loss and bool(lab.bench.paths())
        adapter, gradient = with_layer_values(lab), notes.gradient if backward else None
        for place, batch in enumerate(lab.train.batches):
            lab.progress(f"Batch {place + 1} of {len(lab.train.batches)}")
            notes.begin(place == 0)
            with adapter.layer_values(lab.bench, wanted, notes.value, gradient, operations=operations):
                if backward:
                    lab.bench.gradients(batch)
                elif lab.subject.step is not None:
                    lab.bench.loss(batch)
                else:
                    lab.bench.forward(batch.inputs)
        if not notes.rows:
            raise UnusableInput(f"no layer fits {layers!r}." if layers else "the model has no layer that puts out an array.")
        return ActivationReport(tuple(notes.layers()), notes.samples, tuple(lab.notes))


class Notes:
    def __init__(self, lab: Lab) -> None:
        self.rows: dict[str, np.ndarray] = {}
        self.samples = 0
        self._gradients: dict[str, np.ndarray] = {}
        self._heard: dict[str, tuple[Heard, tuple[int, ...]]] = {}
        self._values: dict[str, np.ndarray] = {}
        self._gradient_values: dict[str, np.ndarray] = {}
        self._pinned: dict[str, list[float]] = {}
        self._lab, self._kept, self._first = lab, 0, True
        self._counted = False

    def begin(self, first: bool) -> None:
        self._first, self._counted = first, False

    def value(self, heard: Heard, array: Any) -> None:
        row = self._lab.adapter.measure([array])[0]
        self.rows[heard.path] = merge(self.rows[heard.path], row) if heard.path in self.rows else row
        self._heard.setdefault(heard.path, (heard, tuple(array.shape)))
        if not self._counted:
            self._counted, self.samples = True, self.samples + array.shape[0]
        values = self._lab.adapter.values(array)
        share = pinned_share(heard.activation, values)
        if share is not None:
            self._pinned.setdefault(heard.path, []).append(share)
        self._keep(self._values, heard.path, values)

    def gradient(self, heard: Heard, array: Any) -> None:
        row = self._lab.adapter.measure([array])[0]
        self._gradients[heard.path] = merge(self._gradients[heard.path], row) if heard.path in self._gradients else row
        self._keep(self._gradient_values, heard.path, self._lab.adapter.values(array))

    def _keep(self, into: dict[str, np.ndarray], path: str, values: np.ndarray) -> None:
        if self._first and self._kept + values.nbytes <= KEPT_BYTES:
            self._kept += values.nbytes
            into[path] = values.copy()

    def layers(self) -> Iterator[LayerActivation]:
        for path, row in self.rows.items():
            heard, shape = self._heard[path]
            known = Statistics.from_row(row)
            gradient = Statistics.from_row(self._gradients[path]) if path in self._gradients else None
            pinned = float(np.mean(self._pinned[path])) if path in self._pinned else None
            yield LayerActivation(
                path,
                heard.kind,
                heard.activation,
                shape,
                heard.unit_axis,
                known,
                gradient,
                pinned,
                self._values.get(path),
                self._gradient_values.get(path),
                tuple(_warnings(heard, known, gradient, pinned)),
            )


def _warnings(heard: Heard, known: Statistics, gradient: Statistics | None, pinned: float | None) -> Iterator[str]:
    if not known.all_finite:
        yield f"{known.nans:,} NaN and {known.infs:,} Inf among {known.count:,} values"
    if max(abs(known.min), abs(known.max)) > EXTREME:
        yield f"values up to {max(known.min, known.max, key=abs):.3g}"
    if known.count > 1 and known.std < NO_SPREAD:
        yield f"all values are {known.mean:.3g}"
    elif heard.activation in ("relu", "relu6") and known.zero_share > MOSTLY_OFF:
        yield f"{known.zero_share:.0%} of the values are zero: sleuth.dead_units shows which units"
    if pinned is not None and pinned > MOSTLY_PINNED:
        yield f"{pinned:.0%} of the values stand at the ends of {heard.activation}, where its slope is zero"
    if gradient is not None and not gradient.all_finite:
        yield f"the gradient that comes back holds {gradient.nans:,} NaN and {gradient.infs:,} Inf"
    elif gradient is not None and gradient.zeros == gradient.count:
        yield "the gradient that comes back is zero throughout"
