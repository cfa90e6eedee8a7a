"""Gradients, as they are taken: stands in the place of mx.value_and_grad."""

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.listening.patches import attempt, carries_call, tell
from sleuth.adapters.mlx.trees.tree import code_of, named
from sleuth.adapters.mlx.watching.batches import arrays_by_path
from sleuth.adapters.mlx.watching.listeners import COMPILING, LISTENERS, lose_reading, lost
from sleuth.adapters.mlx.watching.tape import Tape

if TYPE_CHECKING:
    from sleuth.adapters.mlx.watching.compiled import Compiled

_taking: "list[Differentiated]" = []
_lose_gradient = lost("gradients of a function could not be heard")


def is_taking() -> bool:
    return bool(_taking)


def patched_value_and_grad(plain: Callable[..., Any]) -> Callable[..., Any]:
    def value_and_grad(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        taken = attempt(_lose_gradient, _differentiated, fun, args, kwargs)
        if taken is None:
            return plain(fun, *args, **kwargs)
        taken.plain = plain(taken.plain, *args, **kwargs)
        return taken

    return value_and_grad


def _differentiated(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Differentiated":
    """Of what MLX is to differentiate."""
    cells = _cell_values(fun) if getattr(fun, "__module__", "") == "mlx.nn.utils" else {}
    model = _content(cells.get("model"))
    if model is not None:  # what nn.value_and_grad differentiates holds its model, and the user's function
        return Differentiated(fun, model, _content(cells.get("fn")))
    door = Door(fun)
    by = kwargs.get("argnums", args[0] if args else None)
    if by is None:
        by = () if kwargs.get("argnames", args[1:]) else (0,)
    by = tuple(by) if isinstance(by, list | tuple) else (by,)
    return Differentiated(door, None, fun, by, door)


class Door:
    """Between MLX and the user's function: what comes in are other arrays than those that the user called it with."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._fun = fun
        self.tell: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.tell is not None:
            attempt(_lose_gradient, self.tell, args, kwargs)
        return self._fun(*args, **kwargs)


class Differentiated:
    """Stands for what mx.value_and_grad returned. While nobody listens it is that function and a call in Python more."""

    def __init__(
        self,
        plain: Callable[..., Any],
        model: nn.Module | None,
        fun: Callable[..., Any] | None,
        by: tuple[int, ...] | None = None,
        door: Door | None = None,
    ) -> None:
        """`fun` is the user's own. `by`: which of its arguments the gradient is taken of; None: they are all but the first."""
        self.plain, self.model, self.fun, self._by = plain, model, fun, by
        self._door = door

    @property
    def code(self) -> Any:
        return code_of(self.fun)

    def of_the_users(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments as the user's function gets them."""
        return args[1:] if self._by is None else args

    def fed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """These, without what is learned."""
        return args[1:] if self._by is None else tuple(None if i in self._by else a for i, a in enumerate(args))

    def learned(self, args: tuple[Any, ...]) -> Any:
        """Of the user's arguments, where there is no model: in the form in which the gradients come."""
        if not self._by or not all(0 <= i < len(args) for i in self._by):
            return None
        return args[self._by[0]] if len(self._by) == 1 else tuple(args[i] for i in self._by)

    def with_learned(self, args: tuple[Any, ...], learned: Any) -> tuple[Any, ...]:
        by = self._by or ()
        others = dict(zip(by, (learned,) if len(by) == 1 else learned, strict=True))
        return tuple(others.get(i, a) for i, a in enumerate(args))

    @contextmanager
    def entering(self, tell: Callable[[dict[str, mx.array], dict[str, Any]], None]) -> Iterator[None]:
        """While it lasts, `tell` is given what the user's function gets: what is learned by its name, and what is fed."""

        def entered(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            tell(named(self.learned(args)), dict(arrays_by_path((self.fed(args), kwargs))))

        if self._door is not None:
            self._door.tell = entered
        try:
            yield
        finally:
            if self._door is not None:
                self._door.tell = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not LISTENERS:
            return self.plain(*args, **kwargs)
        if COMPILING:
            return self._read(args, kwargs)
        if self.model is None and _taking:  # a slope of a slope, or steps that a gradient is taken of: no training by itself
            return self.plain(*args, **kwargs)
        _taking.append(self)
        try:
            return self._told(args, kwargs)
        finally:
            _taking.pop()

    @carries_call
    def _told(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tell(LISTENERS, "hear_gradient_begin", self, args, kwargs)
        told = list(LISTENERS)
        for listener in told if self.model is None else ():  # a step may have shown by the weights that came in
            listener.leave_when_enough()
        # Who replaced functions of MLX last is the first to put back what stood there.
        try:
            value, gradients = result = self.plain(*args, **kwargs)
        except BaseException:
            tell(told[::-1], "hear_gradient_failed")
            raise
        tell(told[::-1], "hear_gradient", self, value, gradients)
        return result

    @carries_call
    def _read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """MLX reads the function that it compiles: what the loss does is written down, once."""
        listening = ExitStack()
        try:
            learn = attempt(lose_reading, self._write_down, COMPILING[-1], args, kwargs, listening)
            result = self.plain(*args, **kwargs)
        finally:
            attempt(lose_reading, listening.close)
        if learn is not None:
            attempt(lose_reading, learn, result[0])
        return result

    def _write_down(
        self, step: "Compiled", args: tuple[Any, ...], kwargs: dict[str, Any], listening: ExitStack
    ) -> Callable[[Any], None] | None:
        """What it returns is to be given the value."""
        if self.model is None:
            return step.reading.gradient_begins(self, args, kwargs, listening) if self._by else None
        step.model = step.model or self.model
        step.training = bool(self.model.training)
        if step.tape is None:
            step.tape = Tape(self.model)
            listening.enter_context(step.tape.listening())
        return None


def _cell_values(function: Any) -> dict[str, CellType]:
    if not isinstance(function, FunctionType):
        return {}
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _content(cell: CellType | None) -> Any:
    try:
        return None if cell is None else cell.cell_contents
    except ValueError:  # nothing is in it yet
        return None


def patched_cells() -> list[Callable[[], None]]:
    """What nn.value_and_grad returned before anybody listened: a function that holds mx.value_and_grad's in a cell. Returns what
    puts back the first content of each."""
    codes = [c for c in nn.value_and_grad.__code__.co_consts if getattr(c, "co_name", "") == "wrapped_value_grad_fn"]
    undo = []
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__ in codes:
            cells = _cell_values(thing)
            cell, model = cells.get("value_grad_fn"), _content(cells.get("model"))
            if cell is not None and model is not None and not isinstance(_content(cell), Differentiated | None):
                undo.append(_put(cell, Differentiated(cell.cell_contents, model, getattr(thing, "__wrapped__", None))))
    return undo


def _put(cell: CellType, new: Differentiated) -> Callable[[], None]:
    cell.cell_contents = new

    def undo() -> None:
        if cell.cell_contents is new:
            cell.cell_contents = new.plain

    return undo
