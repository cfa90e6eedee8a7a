"""The gradient of every parameter: how large it is, and what is wrong with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.adapters import adapter_for
from sleuth.core.contract.adapter import Adapter, Describes, LayerValues
from sleuth.core.errors import UnusableInput
from sleuth.core.statistics import Statistics
from sleuth.instruments.laboratory import Training, opened
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Viewed

# Norms: above the first one step leaps, below the second it moves nothing.
LARGE = 100.0
SMALL = 1e-7


@dataclass(frozen=True)
class ParameterGradient:
    """`state`: fine, missing (the loss does not reach it), zero, nan, inf, large or small."""

    path: str
    shape: tuple[int, ...]
    state: str
    norm: float | None = None  # of what is finite; None: missing
    mean: float | None = None  # of the sizes |g|
    largest: float | None = None
    zeros: int = 0
    nans: int = 0
    infs: int = 0
    large: int = 0  # values of a size above the limit for large
    small: int = 0  # not zero, below the limit for small


@dataclass(frozen=True)
class GradientReport(Viewed):
    parameters: tuple[ParameterGradient, ...]  # those that are trained, in the order of the model
    loss: float | None  # None: the gradients were there already
    norm: float  # of all together, of what is finite
    diagnosis: tuple[str, ...]  # empty: nothing is wrong
    notes: tuple[str, ...] = ()

    def __getitem__(self, path: str) -> ParameterGradient:
        found = next((p for p in self.parameters if p.path == path), None)
        if found is None:
            raise KeyError(path)
        return found

    def having(self, state: str) -> tuple[str, ...]:
        return tuple(p.path for p in self.parameters if p.state == state)

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


def gradients(
    model: Any,
    data: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    large: float = LARGE,
    small: float = SMALL,
    progress: bool | None = None,
) -> GradientReport:
    """Gradients of one batch, by parameter. Without `data`, those that your own `loss.backward()` has left in the model.

    The batch runs through a copy of the model, in the mode that it is in; `optimizer` is not needed.
    """
    training = Training(model, data, loss, optimizer, step, split, progress)
    subject = training.subject
    if subject.train is None:
        adapter = adapter_for(subject.model)
        if not isinstance(adapter, LayerValues) or not isinstance(adapter, Describes):
            raise UnusableInput(f"gradients of {adapter.name} need data: sleuth.gradients(model, data, loss=criterion).")
        shapes = {p.path: p.shape for p in adapter.architecture(subject).parameters}
        return _report(adapter, adapter.held_gradients(subject.model), shapes, None, large, small, ())
    with opened(training, loss=True) as lab:
        lab.progress("One forward and backward")
        found = lab.bench.gradients(lab.batch)
        shapes = {path: tuple(lab.bench.parameter(path).shape) for path in found.by_path}
        return _report(lab.adapter, found.by_path, shapes, found.loss, large, small, tuple(lab.notes))


def _report(
    adapter: Adapter,
    by_path: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    loss: float | None,
    large: float,
    small: float,
    notes: tuple[str, ...],
) -> GradientReport:
    if not by_path:
        raise UnusableInput("no parameter of the model is trainable.")
    from sleuth.instruments.gradient_diagnosis import diagnose

    found = tuple(_measured(path, shapes[path], adapter, g, large, small) for path, g in by_path.items())
    norm = float(np.sqrt(sum((p.norm or 0.0) ** 2 for p in found)))
    return GradientReport(found, loss, norm, tuple(diagnose(found, large, small)), notes)


def _measured(
    path: str, shape: tuple[int, ...], adapter: Adapter, gradient: Any, large: float, small: float
) -> ParameterGradient:
    if gradient is None:
        return ParameterGradient(path, shape, "missing")
    known = Statistics.from_row(adapter.measure([gradient])[0])
    sizes = np.abs(adapter.values(gradient))
    sizes = sizes[np.isfinite(sizes)]
    return ParameterGradient(
        path,
        shape,
        _state(known, large, small),
        norm=known.norm,
        mean=known.abs_sum / known.finite if known.finite else 0.0,
        largest=max(abs(known.min), abs(known.max)),
        zeros=known.zeros,
        nans=known.nans,
        infs=known.infs,
        large=int(np.count_nonzero(sizes > large)),
        small=int(np.count_nonzero((sizes < small) & (sizes > 0))),
    )


def _state(known: Statistics, large: float, small: float) -> str:
    if known.nans:
        return "nan"
    if known.infs:
        return "inf"
    if known.zeros == known.count:
        return "zero"
    return "large" if known.norm > large else "small" if known.norm < small else "fine"
