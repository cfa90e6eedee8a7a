"""Which layer feeds which in one forward pass of a hand-written model.

A profile function sees layers and activation functions come and go; what NumPy computes between them it does not see. Whatever
was made there counts as made of everything before, so that nothing is taken for a plain chain that is not one.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

from sleuth.adapters.numpy.bench import NumpyBench
from sleuth.adapters.numpy.describing import SOFTMAXES, activation_of, describe, family_of
from sleuth.adapters.numpy.model_parts import layers
from sleuth.adapters.numpy.pass_listener import CALLS, FUNCTIONS, _owner, is_array
from sleuth.core.location import Location, locate
from sleuth.core.observation import Architecture
from sleuth.core.reading.flow import Axes, reshaped
from sleuth.core.runtime.place import is_users
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Flow, Operation

# Of the largest value: what the order of summation may change in float32.
ROUNDING = 1e-4
AVERAGING = ("avg", "average", "mean")


@dataclass(frozen=True)
class Called:
    """A layer or an activation function at work; what it calls itself is its own business."""

    name: str
    path: str
    layer: Any  # None for a function
    family: str
    given: list[np.ndarray]
    location: Location | None


class FlowNotes:
    def __init__(self, model: Any, architecture: Architecture) -> None:
        self._layers = {id(layer): (path, layer) for path, layer in layers(model)}
        self._settings = {layer.path: layer.settings for layer in architecture.layers}
        self._parameters = architecture.parameters
        self._working: tuple[FrameType, Called] | None = None
        self._operations: list[Operation] = []
        self._arrays: list[tuple[np.ndarray, int]] = []  # kept alive: an address is not given twice
        self._claimed: list[tuple[int, Any, np.ndarray]] = []  # layers that are linear by their name, and what they were given

    @contextmanager
    def listening(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(before)

    def expect(self, tree: Any) -> None:
        for path, array in leaves(tree, is_array):
            self._add(Operation(path or "input", "input", (), array.shape), array)

    def flow(self, output: Any) -> Flow:
        ended = {self._source(array) for _, array in leaves(output, is_array)}
        for at, layer, given in self._claimed:
            if not _is_affine(layer, given):
                self._operations[at] = replace(self._operations[at], family="other")
        operations = [replace(o, leaves=i in ended) for i, o in enumerate(self._operations)]
        return Flow(tuple(operations), tuple(sorted(ended)))

    def _event(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call" and self._working is None:
            called = self._called(frame)
            self._working = None if called is None else (frame, called)
        elif event == "return" and self._working is not None and self._working[0] is frame:
            called, self._working = self._working[1], None
            self._returned(called, next((a for _, a in leaves(value, is_array)), None))

    def _called(self, frame: FrameType) -> Called | None:
        name = frame.f_code.co_name
        function = FUNCTIONS.get(name.lower().replace("_", "")) if is_users(frame.f_code.co_filename) else None
        path, layer = self._layers.get(id(_owner(frame)), ("", None)) if name in CALLS else ("", None)
        family = family_of(layer) if layer is not None else ("softmax" if function in SOFTMAXES else "activation")
        if (layer is None and function is None) or family in ("container", "loss"):
            return None
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        given = [a for n in names for _, a in leaves(frame.f_locals.get(n), is_array)]
        caller = frame.f_back
        place = locate(caller.f_code.co_filename, caller.f_lineno) if caller and is_users(caller.f_code.co_filename) else None
        kind = type(layer).__name__ if layer is not None else str(function)
        return Called(kind, path, layer, family, given, place)

    def _returned(self, called: Called, made: np.ndarray | None) -> None:
        if made is None or not called.given:
            return
        sources = tuple(dict.fromkeys(self._source(a) for a in called.given[:1]))
        before = called.given[0].shape
        family, axes = _reading(called, before, made.shape)
        settings = dict(self._settings.get(called.path, {})) if called.layer is not None else {}
        if family in ("linear", "conv"):
            axis = made.ndim - 1 if family == "linear" else 1
            settings |= {"axis": axis, "out_axis": axis, "groups": getattr(called.layer, "groups", 1)}
            self._claimed.append((len(self._operations), called.layer, np.array(called.given[0])))
        if family == "batchnorm":
            settings["centres"] = 1
        own = [p for p in self._parameters if called.layer is not None and p.layer == called.path]
        names = tuple(p.path for p in sorted(own, key=lambda p: -len(p.shape)))
        place = called.location
        self._add(Operation(called.name, family, sources, made.shape, called.path, names, settings, place, axes), made)
        if called.layer is not None and family != "activation" and (inner := activation_of(called.layer)):
            last = len(self._operations) - 1
            self._add(Operation(inner, "activation", (last,), made.shape, called.path, location=place), made)

    def _source(self, array: np.ndarray) -> int:
        for known, at in reversed(self._arrays):
            if known is array:
                return at
            if known.size == array.size and known.size and np.shares_memory(known, array):
                moved = known.shape != array.shape or known.strides != array.strides
                axes = reshaped(known.shape, array.shape) if known.ndim != array.ndim else None
                return self._add(Operation("view", "reshape", (at,), array.shape, axes=axes), array) if moved else at
        everything = tuple(range(len(self._operations)))
        return self._add(Operation("unseen", "other", everything, array.shape), array)

    def _add(self, operation: Operation, made: np.ndarray) -> int:
        self._operations.append(operation)
        self._arrays.append((made, len(self._operations) - 1))
        return len(self._operations) - 1


def _reading(called: Called, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[str, Axes | None]:
    unchanged = tuple((i,) for i in range(len(after))) if len(before) == len(after) else None
    if called.family == "flatten":
        return "reshape", reshaped(before, after)
    if called.family == "pool":
        averages = any(word in called.name.lower() for word in AVERAGING)
        return ("average", unchanged) if averages else ("pool", None)
    return called.family, unchanged if called.family in ("dropout", "batchnorm") else None


def _is_affine(layer: Any, given: np.ndarray) -> bool:
    """A layer called Dense may well apply its activation itself: ReLU shows at -x, tanh at 2x."""
    run = layer.forward if callable(getattr(layer, "forward", None)) else layer
    try:
        zero, one, minus, twice = (np.array(run((k * given).astype(given.dtype)), dtype=np.float64) for k in (0, 1, -1, 2))
    except Exception:  # whatever the user's layer refuses with
        return False
    room = ROUNDING * float(np.abs(twice).max(initial=0.0))
    return bool(np.all(np.abs(one + minus - 2 * zero) <= room) and np.all(np.abs(twice - 2 * one + zero) <= room))


def flow(bench: NumpyBench, batch: Parts) -> Flow:
    notes = FlowNotes(bench.model, describe(Subject(bench.model, None)))
    notes.expect(batch.inputs)
    with np.errstate(all="ignore"):
        with notes.listening():
            output = bench._call(batch.inputs)
        return notes.flow(output)
