"""Listening to single operations: the functions of mlx.core and the methods of its arrays, each replaced while it lasts.

An array is known by its identity: MLX hands on the very objects that it returned.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.listening.patches import put_back
from sleuth.adapters.mlx.arrays import arrays_in
from sleuth.adapters.mlx.model_parts import modules
from sleuth.adapters.mlx.pass_listener import NN_FUNCTIONS, replaced
from sleuth.adapters.mlx.user_line import users_line
from sleuth.core.location import Location

OPERATORS = (
    *(f"__{r}{name}__" for name in ("add", "sub", "mul", "truediv", "pow", "matmul", "floordiv", "mod") for r in ("", "r", "i")),
    "__neg__", "__abs__", "__getitem__", "__setitem__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
)  # fmt: skip
# They compute, order or tell something, and make no array of the training.
SILENT = {
    "eval", "async_eval", "item", "tolist", "save", "savez", "save_safetensors", "load", "compile", "grad",
    "value_and_grad", "vjp", "jvp", "vmap", "checkpoint", "export_function", "export_to_dot", "import_function", "seed",
    "synchronize", "disable_compile", "enable_compile", "default_device", "set_default_device", "default_stream",
    "set_default_stream", "stream", "new_stream", "issubdtype", "result_type", "broadcast_shapes", "depends",
    "custom_function", "array_equal", "exporter",
}  # fmt: skip
SPELLED = {"truediv": "divide", "mul": "multiply", "sub": "subtract", "pow": "power"}


@dataclass(frozen=True)
class Operation:
    name: str
    given: tuple[mx.array, ...]
    made: tuple[mx.array, ...]
    layer: str
    location: Location | None
    constants: tuple[float, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    module: nn.Module | None = None  # a layer that was taken as one operation
    outside: bool = False  # of the model


class Operations:
    """`whole`: modules that count as one operation, whatever they do inside."""

    def __init__(
        self,
        model: nn.Module,
        whole: Callable[[nn.Module], bool] = lambda module: False,
        passed: Callable[[Operation, Any], Any] | None = None,
    ) -> None:
        self._known = {id(module): (path, module) for path, module in modules(model)}
        self._whole = {key for key, (_, module) in self._known.items() if whole(module)}
        self._passed = passed  # what an operation returns goes through it
        self._stack: list[str] = []
        self._inside = 0
        self.heard: list[Operation] = []
        self.on_heard: Callable[[], None] = lambda: None

    @contextmanager
    def listening(self) -> Iterator["Operations"]:
        undo: list[Callable[[], None]] = []
        try:
            for owner, name in places():
                undo.append(replaced(owner, name, self._function(vars(owner)[name], _plain(name))))
            for kind in {type(module) for _, module in self._known.values()}:
                undo.append(replaced(kind, "__call__", self._module(kind.__call__)))
            yield self
        finally:
            put_back(*reversed(undo))

    def _function(self, plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return plain(*args, **kwargs)
            self._inside += 1
            try:
                # What is done in place would change what it was given.
                given = tuple(
                    mx.array(a) if i == 0 and name.startswith("in place") else a
                    for i, a in enumerate(arrays_in((args, tuple(kwargs.values()))))
                )
                output = plain(*args, **kwargs)
                return self._note(name.removeprefix("in place "), given, args, kwargs, output, None)
            finally:
                self._inside -= 1

        return call

    def _module(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            key = id(module)
            if key not in self._known or self._inside:
                return plain(module, *args, **kwargs)
            self._stack.append(self._known[key][0])
            is_whole = key in self._whole
            self._inside += is_whole
            try:
                output = plain(module, *args, **kwargs)
                if is_whole:
                    given = tuple(arrays_in((args, tuple(kwargs.values()))))
                    output = self._note(type(module).__name__, given, args, kwargs, output, module)
                return output
            finally:
                self._inside -= is_whole
                self._stack.pop()

        return call

    def _note(
        self, name: str, given: tuple[mx.array, ...], args: tuple[Any, ...], kwargs: Any, output: Any, module: nn.Module | None
    ) -> Any:
        numbers = tuple(float(a) for a in args if isinstance(a, int | float) and not isinstance(a, bool))
        settings = {**{str(i): a for i, a in enumerate(args) if not isinstance(a, mx.array)}, **kwargs}
        made = arrays_in(output if name != "__setitem__" else args[0])
        layer = self._stack[-1] if self._stack else ""
        operation = Operation(name, given, tuple(made), layer, users_line(), numbers, settings, module, not self._stack)
        if self._passed is not None:
            output = self._passed(operation, output)
            operation = replace(operation, made=tuple(arrays_in(output)))
        self.heard.append(operation)
        self.on_heard()
        return output


def places() -> Iterator[tuple[Any, str]]:
    for owner in (mx, mx.fast, mx.linalg, mx.random):
        for name, thing in list(vars(owner).items()):
            if type(thing).__name__ == "nb_func" and not name.startswith("_") and name not in SILENT:
                yield owner, name
    yield from ((nn, name) for name in NN_FUNCTIONS if name in vars(nn))
    for name, thing in list(vars(mx.array).items()):
        plain = type(thing).__name__ == "nb_method" and not name.startswith("_") and name not in SILENT
        if plain or name in OPERATORS:
            yield mx.array, name


def _plain(name: str) -> str:
    """As a user would say it: __radd__ → add, __iadd__ → in place add."""
    if not name.startswith("__") or name in ("__getitem__", "__setitem__"):
        return name
    word = name.strip("_")
    plain = (
        word[1:] if word[1:] in ("add", "sub", "mul", "truediv", "pow", "matmul", "floordiv", "mod") and word[0] in "ri" else word
    )
    return ("in place " if word != plain and word[0] == "i" else "") + SPELLED.get(plain, plain)
