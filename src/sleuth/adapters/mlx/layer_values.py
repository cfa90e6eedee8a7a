"""Values inside a model while a bench runs it: what layers put out, and the gradients that come back to them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.arrays import is_array
from sleuth.adapters.mlx.bench import own_bench
from sleuth.adapters.mlx.inspecting.layer_calls import Visitor
from sleuth.adapters.mlx.kinds import activation_of, children
from sleuth.adapters.mlx.operations import Operation, Operations
from sleuth.adapters.mlx.pass_listener import MX_FUNCTIONS, NN_FUNCTIONS
from sleuth.core.contract.adapter import Bench, LayerValues
from sleuth.core.contract.workload import Hear, Heard, Wanted
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves, map_arrays

ACTIVATIONS = {**MX_FUNCTIONS, **NN_FUNCTIONS}


class MlxLayerValues(LayerValues):
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        raise UnusableInput(
            "a model of MLX keeps no gradients, nn.value_and_grad returns them: give data and a loss, "
            "sleuth.gradients(model, data, loss=…)."
        )

    @contextmanager
    def layer_values(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> Iterator[None]:
        held = own_bench(bench)
        with held.without_asking_reach(), Overhearing(held.model, wanted, value, gradient, operations).listening():
            yield


class Overhearing:
    def __init__(self, model: nn.Module, wanted: Wanted, value: Hear, gradient: Hear | None, operations: bool) -> None:
        self._wanted, self._value, self._gradient = wanted, value, gradient
        self._everything = operations
        self._calls: Counter[str] = Counter()
        self._visitor = Visitor(model, on_output=self._layer)
        self._visitor.on_begin = self._calls.clear
        self._operations = Operations(model, whole=lambda module: not children(module), passed=self._operation)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as stack:
            # From the inside: while an operation is told, the layer that it ran in is still open.
            stack.enter_context(self._operations.listening())
            stack.enter_context(self._visitor.following())
            yield

    def _layer(self, number: int, module: nn.Module, output: Any) -> Any:
        path = self._visitor.noted[number].path
        if not path or not self._wanted(path, not children(module)):
            return output
        return self._tell(path, type(module).__name__, activation_of(module), output)

    def _operation(self, operation: Operation, output: Any) -> Any:
        self._operations.heard.clear()
        word = ACTIVATIONS.get(operation.name, "")
        word = word if operation.name != "maximum" or 0.0 in operation.constants else ""
        inside = bool(self._visitor.stack)
        if operation.module is not None or (not inside and not self._everything) or not (word or self._everything):
            return output
        path = f"{operation.layer}.{operation.name}" if operation.layer else operation.name
        return self._tell(path, operation.name, word, output) if self._wanted(path, bool(word)) else output

    def _tell(self, path: str, kind: str, activation: str, output: Any) -> Any:
        self._calls[path] += 1
        name = path if self._calls[path] == 1 else f"{path}#{self._calls[path]}"
        tapped: dict[int, mx.array] = {}
        for part, array in leaves(output, is_array):
            if array.ndim:
                heard = Heard(f"{name}[{part}]" if part else name, kind, activation, array.ndim - 1)
                self._value(heard, mx.stop_gradient(array))
                tapped[id(array)] = self._tapped(heard, array)
        return map_arrays(output, lambda array: tapped.get(id(array), array), is_array)

    def _tapped(self, heard: Heard, array: mx.array) -> mx.array:
        listen = self._gradient
        if listen is None or not mx.issubdtype(array.dtype, mx.floating):
            return array

        @mx.custom_function  # type: ignore[untyped-decorator]
        def tap(x: mx.array) -> mx.array:
            return mx.stop_gradient(x)

        @tap.vjp  # type: ignore[untyped-decorator]
        def back(x: mx.array, cotangent: mx.array, output: mx.array) -> mx.array:
            listen(heard, cotangent)
            return cotangent

        made: mx.array = tap(array)
        return made
