"""Looking at a model: each method is filled in by the module of that name in the adapter's own `inspecting` package.

A module is imported where it is called: a watch does not pay for what only instruments need.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sleuth.core.contract.adapter import Attends, Credits, Inspects, Routes, Shows
from sleuth.core.contract.inspection import AttentionMap, ClassActivation, Kernels, Maps, Part, Passage, Route


class InspectsByModule(Inspects, Routes, Shows, Credits, Attends):
    """A subclass stands in the `inspecting` package, and adds `made` and `looking`."""

    def parts(self, model: Any) -> tuple[Part, ...]:
        return self._module("parts").parts(model)

    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        return self._module("forward_pass").passage(model, inputs, timed=time, as_is=as_is)

    def route(self, model: Any, inputs: Any) -> Route:
        return self._module("operation_graph").route(model, inputs)

    def kernels(self, model: Any, layer: str | None) -> Kernels:
        return self._module("maps").kernels(model, layer)

    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        return self._module("maps").maps(model, inputs, layers)

    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        return self._module("class_activation").class_activation(model, inputs, layer, target)

    def attention(self, model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
        return self._module("attention").attention(model, inputs)

    def _module(self, name: str) -> Any:
        home = next(kind for kind in type(self).__mro__ if InspectsByModule in kind.__bases__)
        return import_module(f"{home.__module__.rpartition('.')[0]}.{name}")
