"""One of the models that are compared: on a bench of its own, with the batch in the form that it takes."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from sleuth.comparing.pieces import Piece, pieces_of
from sleuth.core.contract.adapter import Adapter, Bench, CheckpointState, Describes, Steps
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.observation import Architecture, Parameter, Settings
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts, Subject

# More samples show no more, and every layer's output is kept.
MOST_SAMPLES = 16


@dataclass(frozen=True)
class Side:
    name: str
    adapter: Adapter
    subject: Subject
    bench: Bench
    architecture: Architecture
    settings: Settings
    batch: Parts
    training: bool = False  # the mode that layers are compared in
    parameters: tuple[Parameter, ...] = ()  # as all frameworks could hold them
    pieces: Mapping[str, Piece] = field(default_factory=dict)  # of those that this one holds otherwise

    @property
    def epsilon(self) -> float:
        """The relative rounding error of the numbers that it computes with."""
        dtype = self.settings.parameter_dtype or "float32"
        return 2.0**-8 if dtype == "bfloat16" else float(np.finfo(dtype if dtype.startswith("float") else "float32").eps)

    @property
    def has_dropout(self) -> bool:
        return any(x.family == "dropout" and x.settings.get("p", 1) for x in self.architecture.layers)

    def as_compared(self, bench: Bench | None = None) -> None:
        (bench or self.bench).set_training(self.training)

    @property
    def keeps_statistics(self) -> bool:
        """Running statistics that nobody can carry over."""
        return not isinstance(self.adapter, CheckpointState) and any(x.family == "batchnorm" for x in self.architecture.layers)

    @property
    def has_loss(self) -> bool:
        return self.settings.loss is not None or self.subject.loss is not None or self.subject.step is not None

    def value(self, path: str, bench: Bench | None = None) -> np.ndarray:
        """Of a parameter, or of a piece."""
        piece = self.pieces.get(path)
        bench = bench or self.bench
        if piece is None:
            return self._own(path, bench)
        found = piece.gathered({source: self._own(source, bench) for source in piece.sources})
        assert found is not None
        return found

    def _own(self, path: str, bench: Bench) -> np.ndarray:
        return np.array(self.adapter.values(bench.parameter(path)), np.float64)

    def write(self, path: str, values: np.ndarray) -> None:
        piece = self.pieces.get(path)
        if piece is None:
            self.bench.write(path, values)
            return
        own = {source: self._own(source, self.bench) for source in piece.sources}
        for source, part in piece.scattered(values, own):
            self.bench.write(source, part)

    def with_pieces(self, arrays: Mapping[str, np.ndarray | None]) -> dict[str, np.ndarray | None]:
        """Arrays by parameter, such as gradients, and beside them those of the pieces."""
        return {**arrays, **{path: piece.gathered(arrays) for path, piece in self.pieces.items()}}

    def outputs(self, bench: Bench | None = None) -> list[np.ndarray]:
        """Of the model as a whole, each array that it returns."""
        output = (bench or self.bench).forward(self.batch.inputs)
        return [self.adapter.values(a) for _, a in leaves(output, self.adapter.is_array)]


@contextmanager
def opened(name: str, adapter: Adapter, subject: Subject, batch: Parts) -> Iterator[Side]:
    """Whatever is done on the bench, the user's own objects and random states are as they were."""
    if not isinstance(adapter, Steps) or not isinstance(adapter, Describes):
        raise UnusableInput(f"models of {adapter.name} cannot be compared yet.")
    with ExitStack() as stack:
        stack.enter_context(adapter.preserve(subject))
        architecture, settings = adapter.architecture(subject), adapter.settings(subject)
        bench = stack.enter_context(adapter.bench(subject))
        parameters, pieces = pieces_of(architecture)
        side = Side(name, adapter, subject, bench, architecture, settings, batch, parameters=parameters, pieces=pieces)
        yield replace(side, batch=_in_its_form(side, batch))


def neutral(tree: Any, adapters: list[Adapter]) -> Any:
    """The same tree with NumPy's arrays, of the first samples, whoever made them."""

    def values(array: Any) -> np.ndarray:
        if isinstance(array, np.ndarray):
            return array
        return np.asarray(next(a for a in adapters if a.is_array(array)).values(array))

    def is_array(thing: Any) -> bool:
        return isinstance(thing, np.ndarray) or any(a.is_array(thing) for a in adapters)

    plain = map_arrays(tree, values, is_array)
    lengths = {len(a) if a.ndim else 0 for _, a in leaves(plain, is_array)}
    if len(lengths) != 1 or max(lengths) <= MOST_SAMPLES:
        return plain
    return map_arrays(plain, lambda a: a[:MOST_SAMPLES], is_array)


def _in_its_form(side: Side, batch: Parts) -> Parts:
    """Floats in the model's own precision; where the model refuses images as they are, with their channels elsewhere."""
    wanted = side.settings.parameter_dtype or "float32"
    dtype = np.dtype(wanted if wanted in ("float16", "float64") else "float32")
    plain = Parts(*(_cast(part, dtype) for part in (batch.inputs, batch.target, batch.raw)))
    side.bench.set_training(False)
    try:
        side.bench.forward(plain.inputs)
    except Unsupported as error:
        raise UnusableInput(f"{side.name} cannot be run: {error}.") from None
    except Exception as error:
        for turned in turns(plain):
            if runs(side, turned):
                return turned
        line = str(error).splitlines()
        raise CannotRun(f"{type(error).__name__}: {line[0] if line else ''}") from None
    return plain


class CannotRun(Exception):
    """The model raises on this batch, whichever way its images are turned."""


def turns(batch: Parts) -> Iterator[Parts]:
    """The images with their channels last instead of first, and the other way round."""
    for source, target in ((1, -1), (-1, 1)):
        turn = partial(_turn, source=source, target=target)
        inputs = map_arrays(batch.inputs, turn, _is_array)
        if any(a.ndim >= 3 for _, a in leaves(inputs, _is_array)):
            yield Parts(inputs, batch.target, map_arrays(batch.raw, turn, _is_array))


def runs(side: Side, batch: Parts) -> bool:
    try:
        side.bench.forward(batch.inputs)
    except Exception:
        return False
    return True


def _turn(array: np.ndarray, source: int, target: int) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, source, target)) if array.ndim >= 3 and array.dtype.kind == "f" else array


def _cast(tree: Any, dtype: np.dtype) -> Any:
    return map_arrays(tree, lambda a: a.astype(dtype) if a.dtype.kind == "f" else a, _is_array)


def _is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray)
