"""Which layer feeds which in one forward pass of a Keras model.

Layers, their activations and the operations of functional models are heard; what a `call` of the user's own computes between
them is not. Whatever was made there counts as made of everything before: nothing is taken for a plain chain that is not one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from keras import layers as kinds
from keras.src.ops.operation import Operation as KerasOperation

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.bench import KerasBench
from sleuth.adapters.keras.families import ACTIVATIONS, POOLS, RESHAPING, SOFTMAXES, family_of, fused, settings_of
from sleuth.adapters.keras.model_parts import inner, variables
from sleuth.adapters.keras.pass_listener import CLOSED, Hearing
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.sides import without_warnings
from sleuth.core.reading.flow import Axes, reshaped
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts
from sleuth.core.trial import Flow, Operation

SUMS = (kinds.Add, kinds.Subtract)
WORDS = {"Add": "sum", "Subtract": "sum", "Multiply": "product"}


class FlowNotes:
    def __init__(self, hearing: Hearing, training: bool) -> None:
        self._training = training
        self._operations: list[Operation] = []
        self._made_by: dict[int, int] = {}
        self._alive: list[Any] = []  # an id is not given twice while the array lives
        self._parameters: dict[str, list[str]] = {}
        for held in sorted(variables(hearing.model), key=lambda held: -len(held.variable.shape)):
            self._parameters.setdefault(held.layer, []).append(held.path)
        self._learned = {held.path for held in variables(hearing.model) if held.variable.trainable}
        self._hearing = hearing
        hearing.on_layer.append(self._layer)

    @property
    def operations(self) -> list[Operation]:
        return self._operations

    def expect(self, tree: Any) -> None:
        for path, array in leaves(tree, backend.is_array):
            self._add(Operation(path or "input", "input", (), _shape(array)), array)

    def flow(self, output: Any) -> Flow:
        ended = {self._source(array) for _, array in leaves(output, backend.is_tensor)}
        operations = [replace(o, leaves=i in ended) for i, o in enumerate(self._operations)]
        return Flow(tuple(operations), tuple(sorted(ended)))

    def _layer(self, path: str, layer: Any, given: tuple[Any, ...], output: Any) -> None:
        family = family_of(layer)
        if layer is self._hearing.model or (inner(layer) and family not in CLOSED) or not given or self._hearing._is_closed(path):
            return
        made = next(a for _, a in leaves(output, backend.is_tensor))
        read, axes, settings = self._read(layer, family, _shape(given[0]), _shape(made))
        sources = tuple(dict.fromkeys(self._source(array) for array in given))
        place = self._hearing.line_of(layer)
        names = tuple(n for n in self._parameters.get(path, ()) if n in self._learned)
        kind = type(layer).__name__
        self._add(Operation(kind, read, sources, _shape(made), path, names, settings, place, axes), made)
        if family not in ("activation", "softmax", *CLOSED) and (word := fused(layer)):
            last = len(self._operations) - 1
            axis = {"axis": len(made.shape) - 1} if word in SOFTMAXES else {}
            sort = "softmax" if word in SOFTMAXES else "activation"
            self._add(Operation(word, sort, (last,), _shape(made), path, (), axis, place), made)

    def _read(
        self, layer: Any, family: str, before: tuple[int, ...], after: tuple[int, ...]
    ) -> tuple[str, Axes | None, dict[str, Any]]:
        unchanged = tuple((i,) for i in range(len(after))) if len(before) == len(after) else None
        dims = len(after)
        if isinstance(layer, tuple(kinds_of("Add", "Subtract", "Multiply"))):
            return WORDS[type(layer).__name__], None, {}
        if isinstance(layer, RESHAPING):
            return "reshape", _moved(layer, before, after), {}
        if isinstance(layer, POOLS):
            averages = "Average" in type(layer).__name__
            return ("average", unchanged, {}) if averages and unchanged else ("pool", None, {})
        if family in ("linear", "conv"):
            first = family == "conv" and getattr(layer, "data_format", "") == "channels_first"
            axis = 1 if first else dims - 1
            # Of an einsum nobody knows which axes are features.
            plain = isinstance(layer, kinds.Dense) or family == "conv"
            more = {
                "axis": axis,
                "out_axis": axis,
                "groups": getattr(layer, "groups", 1),
                "transposed": "Transpose" in type(layer).__name__,
            }
            return (family, None, settings_of(layer) | more) if plain else ("other", None, {})
        if family == "batchnorm":
            centres = {"centres": layer.axis % dims} if self._training and layer.trainable else {}
            return family, unchanged, centres
        if family == "dropout":
            return family, unchanged, {"p": float(getattr(layer, "rate", 0.0)) if self._training else 0.0}
        if family == "softmax":
            axis = getattr(layer, "axis", -1)
            return family, None, {"axis": axis % dims if isinstance(axis, int) and dims else dims - 1}
        return ("other" if family == "container" else family), None, {}

    def operation(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Those of `keras.ops` in a functional model."""

        def call(one: Any, *args: Any, **kwargs: Any) -> Any:
            output = plain(one, *args, **kwargs)
            made = next((a for _, a in leaves(output, backend.is_tensor)), None)
            given = [a for _, a in leaves((args, kwargs), backend.is_tensor)]
            if not isinstance(one, kinds.Layer) and made is not None and given and id(made) not in self._made_by:
                self._operation(one, given, made)
            return output

        return call

    def _operation(self, one: Any, given: list[Any], made: Any) -> None:
        name = type(one).__name__
        sources = tuple(dict.fromkeys(self._source(array) for array in given))
        word = ACTIVATIONS.get(name.lower(), "")
        family, axes = ("activation", None) if word else (WORDS.get(name, "other"), None)
        if family in ("sum", "product") and len(given) == 1 and _shape(given[0]) == _shape(made):
            family, axes = "scale", tuple((i,) for i in range(len(made.shape)))
        self._add(Operation(word or name.lower(), family, sources, _shape(made), self._hearing.layer, axes=axes), made)

    def _source(self, array: Any) -> int:
        at = self._made_by.get(id(array))
        if at is not None:
            return at
        everything = tuple(range(len(self._operations)))
        return self._add(Operation("unseen", "other", everything, _shape(array)), array)

    def _add(self, operation: Operation, made: Any) -> int:
        self._operations.append(operation)
        self._alive.append(made)
        self._made_by[id(made)] = len(self._operations) - 1
        return len(self._operations) - 1


def kinds_of(*names: str) -> list[type]:
    return [getattr(kinds, name) for name in names]


def _moved(layer: Any, before: tuple[int, ...], after: tuple[int, ...]) -> Axes | None:
    if isinstance(layer, kinds.Permute):
        return ((0,), *((d,) for d in layer.dims))
    if isinstance(layer, kinds.Flatten) and layer.data_format == "channels_first" and len(before) > 2:
        return None
    return reshaped(before, after)


def _shape(array: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in array.shape)


def flow(bench: KerasBench, batch: Parts) -> Flow:
    native = bench.native(batch)
    found: list[Flow] = []

    def run(inputs: Any) -> None:
        hearing = Hearing(bench.model, keep=lambda array: array)
        notes = FlowNotes(hearing, bench.training)
        notes.expect(inputs)
        with replaced(KerasOperation, "__call__", notes.operation), hearing.listening():
            output = bench.call(inputs)
        found.append(notes.flow(output))

    before = bench.snapshot()
    try:
        with without_warnings():
            bench.side.followed(run, native.inputs)
    finally:
        before.put_back()
    return found[-1]
