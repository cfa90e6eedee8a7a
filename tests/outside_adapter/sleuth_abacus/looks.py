"""What is measured: of one pass on the bench, and of a step that a watch looks at in full."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from abacus import Array, Module, ReLU

from sleuth import kernel
from sleuth.adapters.common.loss_family import recognise
from sleuth.adapters.listening.patches import Patch
from sleuth.core.observation import Argument, ArrayFacts, Failure, Frame, LossCall, Observation, Role, Units
from sleuth.core.runtime.place import location_of
from sleuth.core.statistics import Statistics


class Heard:
    """While it is open, the calls of a model and of its layers are heard: on the bench only, where no user's training runs."""

    def __init__(self, model: Module) -> None:
        self._paths = {id(module): path for path, module in model.modules()}
        self.model = model
        self.outputs: list[tuple[str, Array]] = []
        self.inside: str | None = None  # the layer that was called last and has not returned

    def __enter__(self) -> None:
        def make(plain: Callable[..., Any]) -> Callable[..., Any]:
            def call(module: Module, x: Any) -> Any:
                path = self._paths.get(id(module))
                self.inside = path or self.inside
                output = plain(module, x)
                if path is not None:
                    self.outputs.append((path, output))
                    self.inside = None
                return output

            return call

        self._patch = Patch(Module, "__call__", make)

    def __exit__(self, *exception: object) -> None:
        self._patch.remove()


def of_pass(heard: Heard, step: int, loss: Any, output: Array, target: Array, value: Array) -> Iterator[Observation]:
    layers = [(path, array.data) for path, array in heard.outputs if path]
    yield Frame(step, Role.ACTIVATION, tuple(path for path, _ in layers), kernel.measure([array for _, array in layers]))
    kinds = dict(heard.model.modules())
    for path, array in layers:
        if isinstance(kinds[path], ReLU):
            columns = array.reshape(-1, array.shape[-1])
            counts = (columns != 0).sum(0)
            yield Units(step, path, "activation", "relu", len(columns), counts, columns.min(0), columns.max(0))
    family, reduction = recognise(output.data, target.data, value.data, lambda other: loss(Array(other), target).data)
    number = value.item() if np.isfinite(value.item()) else None
    arguments = (Argument(_facts("0", output), "output"), Argument(_facts("1", target), "target"))
    yield LossCall(getattr(loss, "__name__", "loss"), family, number, arguments, reduction=reduction, returned=number)


def failure(error: Exception, phase: str, layer: str) -> Failure:
    kind = "shape" if isinstance(error, ValueError) else "other"
    return Failure(phase, type(error).__name__, str(error), kind, layer, location=location_of(error.__traceback__))


def frames(step: int, tables: Mapping[Role, Mapping[str, np.ndarray]]) -> dict[Role, Frame]:
    """Off the training thread, of copies."""
    return {
        role: Frame(step, role, tuple(arrays), kernel.measure(list(arrays.values()))) for role, arrays in tables.items() if arrays
    }


def _facts(path: str, array: Array) -> ArrayFacts:
    values = array.data
    finite = values[np.isfinite(values)]
    whole = float((finite == np.round(finite)).mean()) if finite.size else 0.0
    return ArrayFacts(path, array.shape, str(array.dtype), Statistics.from_row(kernel.measure([values])[0]), whole)
