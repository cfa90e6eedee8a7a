"""One traced function as a flat list of operations: calls of jit, remat and hand-written derivatives are laid open."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jax.extend import core

from sleuth.adapters.jax.layer_marks import SCOPE
from sleuth.adapters.jax.words import FUNCTIONS
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import SLEUTH, is_users

# Primitive → the parameter that holds what it runs.
OPENED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}
# Of JAX, between the user's line and the function that it calls.
WRAPPERS = ("reraise_with_filtered_traceback", "cache_miss", "op", "meth", "deferring_binary_op", "__call__", "wrapper")
HAND_WRITTEN = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
# Primitive → the parameters that hold what it repeats, or chooses from.
INNER = {"scan": ("jaxpr",), "while": ("body_jaxpr",), "cond": ("branches",)}
# Parameters that hold the derivative.
DERIVATIVES = ("bwd", "jvp_jaxpr_fun")


@dataclass(frozen=True)
class Constant:
    value: Any


Atom = int | Constant


@dataclass(frozen=True)
class Entry:
    name: str
    inputs: tuple[Atom, ...]
    outputs: tuple[int, ...]
    equation: Any
    visits: tuple[int, ...]  # calls of layers that it is part of, the outermost first
    function: str  # relu, softmax, …: the known function that it is a part of, if any
    called: str  # what the user's line calls
    location: Location | None
    number: int  # of the call of `function`


@dataclass(frozen=True)
class Around:
    visits: tuple[int, ...] = ()
    function: str = ""
    number: int = 0
    called: str = ""
    location: Location | None = None


class Tape:
    def __init__(self, closed: Any, around: Around = Around()) -> None:  # noqa: B008
        self.entries: list[Entry] = []
        self.shapes: list[tuple[int, ...]] = []
        self.dtypes: list[Any] = []
        self.custom: dict[str, Location | None] = {}  # operations whose derivative the user has written, and where
        self._numbers: tuple[Any, int] = (None, 0)
        env: dict[Any, Atom] = {}
        self.inputs = [self._slot(env, var) for var in closed.jaxpr.invars]
        env |= {var: Constant(value) for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)}
        self._open(closed.jaxpr, env, around)
        self.outputs = [self._atom(env, var) for var in closed.jaxpr.outvars]

    def _slot(self, env: dict[Any, Atom], var: Any) -> int:
        self.shapes.append(tuple(getattr(var.aval, "shape", ())))
        self.dtypes.append(getattr(var.aval, "dtype", None))
        env[var] = len(self.shapes) - 1
        return len(self.shapes) - 1

    def _atom(self, env: dict[Any, Atom], var: Any) -> Atom:
        return Constant(var.val) if isinstance(var, core.Literal) else env[var]

    def _open(self, jaxpr: Any, env: dict[Any, Atom], around: Around) -> None:
        for equation in jaxpr.eqns:
            inputs = tuple(self._atom(env, var) for var in equation.invars)
            here = self._place(equation, around)
            inner = equation.params.get(OPENED.get(equation.primitive.name, ""))
            if inner is None:
                self._note_within(equation)
                outputs = tuple(self._slot(env, var) for var in equation.outvars)
                self.entries.append(
                    Entry(
                        equation.primitive.name, inputs, outputs, equation, here.visits, here.function, here.called,
                        here.location, here.number,
                    )
                )  # fmt: skip
                continue
            body, constants = getattr(inner, "jaxpr", inner), getattr(inner, "consts", ())
            self._note_custom(equation, body)
            within: dict[Any, Atom] = dict(zip(body.invars, inputs, strict=True))
            within |= {var: Constant(value) for var, value in zip(body.constvars, constants, strict=True)}
            self._open(body, within, self._called(equation, body, here))
            for var, result in zip(equation.outvars, body.outvars, strict=True):
                env[var] = self._atom(within, result)

    def _note_custom(self, equation: Any, body: Any) -> None:
        info = getattr(body, "debug_info", None)
        if equation.primitive.name in HAND_WRITTEN and info is not None and is_users(info.func_filename or "<"):
            self.custom[info.func_name] = _derivative_line(equation)

    def _note_within(self, equation: Any) -> None:
        """Loops and branches are not laid open, but derivatives may be written for what is inside them."""
        for word in INNER.get(equation.primitive.name, ()):
            held = equation.params[word]
            for closed in held if isinstance(held, tuple) else (held,):
                self._note_all(closed.jaxpr)

    def _note_all(self, jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            inner = equation.params.get(OPENED.get(equation.primitive.name, ""))
            if inner is None:
                self._note_within(equation)
            else:
                self._note_custom(equation, getattr(inner, "jaxpr", inner))
                self._note_all(getattr(inner, "jaxpr", inner))

    def _called(self, equation: Any, body: Any, here: Around) -> Around:
        """A function that JAX compiles by itself may be known by its name alone."""
        name = str(equation.params.get("name") or getattr(getattr(body, "debug_info", None), "func_name", ""))
        if here.function or name not in FUNCTIONS:
            return here
        return Around(
            here.visits, FUNCTIONS[name], self._number((FUNCTIONS[name], id(equation))), here.called or name, here.location
        )

    def _place(self, equation: Any, around: Around) -> Around:
        info = equation.source_info
        own = tuple(int(n) for n in re.findall(rf"{SCOPE}(\d+)", str(info.name_stack)))
        visits = around.visits + tuple(n for n in own if n not in around.visits)
        frames = [f for f in (info.traceback.frames if info.traceback else ()) if not f.file_name.startswith(SLEUTH)]
        user = next((i for i, frame in enumerate(frames) if is_users(frame.file_name)), None)
        location = around.location if user is None else locate(frames[user].file_name, frames[user].line_num)
        function = around.function or next((known for f in reversed(frames) if (known := known_function(f.function_name))), "")
        number = around.number if around.function else self._number((function, visits, location)) if function else 0
        called = around.called if user is None else _called_by(frames[:user])
        return Around(visits, function, number, called, location)

    def _number(self, key: Any) -> int:
        if self._numbers[0] != key:
            self._numbers = (key, self._numbers[1] + 1)
        return self._numbers[1]

    def evaluate(self, given: Iterable[Any], look: Callable[[Entry, list[Any], list[Any]], None] | None = None) -> list[Any]:
        """The value of every slot; `look` is shown each operation with what went in and what came out."""
        values: list[Any] = [None] * len(self.shapes)
        for slot, value in zip(self.inputs, given, strict=True):
            values[slot] = value
        for entry in self.entries:
            taken = [read(values, atom) for atom in entry.inputs]
            made = run(entry, taken)
            for slot, value in zip(entry.outputs, made, strict=True):
                values[slot] = value
            if look is not None:
                look(entry, taken, made)
        return values

    def sources(self, entry: Entry) -> Iterator[int]:
        yield from (atom for atom in entry.inputs if isinstance(atom, int))


def read(values: list[Any], atom: Atom) -> Any:
    return values[atom] if isinstance(atom, int) else atom.value


def run(entry: Entry, taken: list[Any]) -> list[Any]:
    primitive = entry.equation.primitive
    bound = primitive.get_bind_params(entry.equation.params)
    # JAX before 0.9 gives functions and parameters apart.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    made = primitive.bind(*functions, *taken, **params)
    return list(made) if primitive.multiple_results else [made]


def _derivative_line(equation: Any) -> Location | None:
    """Of the function that gives the derivative, its first."""
    function = next((equation.params[word] for word in DERIVATIVES if word in equation.params), None)
    info = getattr(function, "debug_info", None)
    if info is None or info.func_lineno is None or not is_users(info.func_filename or "<"):
        return None
    return locate(info.func_filename, info.func_lineno)


def known_function(name: str) -> str | None:
    return FUNCTIONS.get(name.rsplit(".", 1)[-1])


def _called_by(frames: list[Any]) -> str:
    """The outermost function of a library that the user's line calls, wrappers passed over."""
    for frame in reversed(frames):
        name = frame.function_name.rsplit(".", 1)[-1]
        if name not in (
            "reraise_with_filtered_traceback",
            "cache_miss",
            "op",
            "meth",
            "deferring_binary_op",
            "__call__",
            "wrapper",
        ):
            return name.removeprefix("_operator_").lstrip("_")
    return ""
