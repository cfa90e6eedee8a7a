"""Which operation feeds which in one forward pass."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.arrays import arrays_in, is_array
from sleuth.adapters.mlx.kinds import family_of, settings_of
from sleuth.adapters.mlx.model_parts import is_buffer, parameters
from sleuth.adapters.mlx.operations import Operation as Heard
from sleuth.adapters.mlx.pass_listener import MX_FUNCTIONS, NN_FUNCTIONS, SOFTMAXES
from sleuth.core.reading.flow import Axes, reshaped
from sleuth.core.runtime.tree import leaves
from sleuth.core.trial import Flow, Operation

RESHAPES = {"reshape", "flatten", "unflatten", "squeeze", "expand_dims"}
SAME = {"astype", "stop_gradient", "contiguous", "view"}
SUMS = {"add", "subtract"}
PRODUCTS = {"multiply", "divide"}


class FlowNotes:
    def __init__(self, model: nn.Module) -> None:
        self._parameters = {id(e.array): e for e in parameters(model) if not is_buffer(e)}
        self._operations: list[Operation] = []
        self._at: dict[int, int] = {}
        self._kept: list[Any] = []  # an identity is not given twice while its array lives

    def __len__(self) -> int:
        return len(self._operations)

    def expect(self, tree: Any) -> None:
        for path, array in leaves(tree, is_array):
            self._add(Operation(path or "input", "input", (), tuple(array.shape)), [array])

    def take(self, heard: Heard) -> None:
        self._kept.append(heard)
        sources = tuple(dict.fromkeys(self._at[id(a)] for a in heard.given if id(a) in self._at))
        if not sources or not heard.made:
            return  # made of parameters and constants alone
        family, axes = self._reading(heard, len(sources))
        settings = _settings(heard, family)
        made = tuple(heard.made[0].shape)
        names = self._names(heard)
        kind = Operation(heard.name, family, sources, made, heard.layer, names, settings, heard.location, axes)
        self._add(kind, list(heard.made))

    def flow(self, output: Any) -> Flow:
        ended = set()
        for array in arrays_in(output):
            if id(array) not in self._at:  # made by something that was not heard
                everything = tuple(range(len(self._operations)))
                self._add(Operation("unseen", "other", everything, tuple(array.shape)), [array])
            ended.add(self._at[id(array)])
        operations = [Operation(**{**vars(o), "leaves": i in ended}) for i, o in enumerate(self._operations)]
        return Flow(tuple(operations), tuple(sorted(ended)))

    def _names(self, heard: Heard) -> tuple[str, ...]:
        if heard.module is not None:
            own = [e for e in self._parameters.values() if e.layer == heard.layer or e.layer.startswith(f"{heard.layer}.")]
        else:
            own = [self._parameters[id(a)] for a in heard.given if id(a) in self._parameters]
        return tuple(e.path for e in sorted(own, key=lambda e: -e.array.ndim))

    def _reading(self, heard: Heard, sources: int) -> tuple[str, Axes | None]:
        before, after = tuple(heard.given[0].shape), tuple(heard.made[0].shape)
        unchanged = tuple((i,) for i in range(len(after))) if len(before) == len(after) else None
        if heard.module is not None:
            family = family_of(heard.module)
            averages = family == "pool" and "Avg" in heard.name
            return ("average", unchanged) if averages else (family, unchanged if family in ("dropout", "batchnorm") else None)
        if heard.name in SAME:
            return "reshape", unchanged
        if heard.name in RESHAPES:
            return "reshape", reshaped(before, after)
        if heard.name in SUMS:
            return ("sum", None) if sources > 1 else ("scale", unchanged)
        if heard.name in PRODUCTS:
            return ("product", None) if sources > 1 else ("scale", unchanged)
        word = {**MX_FUNCTIONS, **NN_FUNCTIONS}.get(heard.name, "")
        if word in SOFTMAXES:
            return "softmax", None
        if word and (heard.name != "maximum" or 0.0 in heard.constants):
            return "activation", None
        return "other", None

    def _add(self, operation: Operation, made: list[mx.array]) -> int:
        self._operations.append(operation)
        self._kept.append(made)
        for array in made:
            self._at[id(array)] = len(self._operations) - 1
        return len(self._operations) - 1


def _settings(heard: Heard, family: str) -> dict[str, Any]:
    found = dict(settings_of(heard.module)) if heard.module is not None else {}
    last = heard.made[0].ndim - 1
    if family in ("linear", "conv"):
        found |= {"axis": last, "out_axis": last, "groups": found.get("groups", 1)}
    if family == "batchnorm":
        found["centres"] = last
    if family == "softmax" and heard.module is None:
        axis = heard.settings.get("axis", heard.settings.get("1", -1))
        found["axis"] = axis % heard.made[0].ndim if isinstance(axis, int) else last
    elif family == "softmax":
        found["axis"] = last
    return found
