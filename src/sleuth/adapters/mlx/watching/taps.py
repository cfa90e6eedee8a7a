"""The places in MLX that every training passes: gradients, optimisers, compiled functions. Replaced while somebody listens."""

import gc
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx import optimizers
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx import made
from sleuth.adapters.mlx.hearing import LOSSES, replaced
from sleuth.adapters.mlx.watching.tape import Tape

PLAIN_VALUE_AND_GRAD = mx.value_and_grad
PLAIN_COMPILE = mx.compile
PLAIN_CLIP_GRAD_NORM = optimizers.clip_grad_norm


class Listener:
    """What those are told who listen. Nothing of it may raise, but `speak_up`."""

    def hear_gradient_begin(self, taken: "Differentiated", args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def hear_gradient(self, taken: "Differentiated", value: Any, gradients: Any) -> None: ...

    def hear_gradient_failed(self) -> None: ...

    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None: ...

    def hear_step(self, optimiser: Optimizer, target: Any, after: Any) -> None: ...

    def hear_compiled_begin(self, step: "Compiled") -> None: ...

    def hear_compiled(self, step: "Compiled", args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None: ...

    def hear_made(self, optimiser: Optimizer) -> None: ...

    def hear_clip(self, gradients: Any) -> None: ...

    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None: ...

    def speak_up(self) -> None:
        """Before weights are written; may raise, where the user asked for it."""

    def step_taken(self) -> None:
        """May raise, where the user asked for it."""


LISTENERS: list[Listener] = []
_undo: list[Callable[[], None]] = []
_inside = {"step": 0, "compiled": 0}
_compiling: "list[Compiled]" = []


def join(listener: Listener) -> None:
    if not LISTENERS:
        _open()
    LISTENERS.append(listener)


def leave(listener: Listener) -> None:
    LISTENERS[:] = [other for other in LISTENERS if other is not listener]
    if not LISTENERS:
        _close()


def forget() -> None:
    """In a child made by fork: nobody drains there."""
    LISTENERS.clear()
    _close()


def _open() -> None:
    _undo.append(replaced(mx, "value_and_grad", _value_and_grad))
    _undo.append(replaced(mx, "compile", _compile))
    _undo.extend(made.listening())
    for owner in (optimizers, optimizers.optimizers):
        _undo.append(replaced(owner, "clip_grad_norm", _clip_grad_norm))
    for name in LOSSES:
        if hasattr(nn.losses, name):
            _undo.append(replaced(nn.losses, name, _loss(getattr(nn.losses, name), name)))
    for kind in _family(Optimizer):
        for name, tap in (("update", _update), ("apply_gradients", _apply_gradients), ("__init__", _init)):
            if name in vars(kind):
                _undo.append(replaced(kind, name, tap(vars(kind)[name])))
    _undo.extend(_taps_on_made())


def _close() -> None:
    while _undo:
        _undo.pop()()


def is_compiling() -> bool:
    return bool(_compiling)


def _family(kind: Any) -> list[Any]:
    return [kind, *(inner for child in kind.__subclasses__() for inner in _family(child))]


# Gradients.


def _value_and_grad(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    cells = _cell_values(fun) if getattr(fun, "__module__", "") == "mlx.nn.utils" else {}
    model = _content(cells.get("model"))
    plain = PLAIN_VALUE_AND_GRAD(fun, *args, **kwargs)
    if model is not None:  # what nn.value_and_grad differentiates holds its model, and the user's function
        return Differentiated(plain, model, _content(cells.get("fn")))
    by = kwargs.get("argnums", args[0] if args else 0)
    return Differentiated(plain, None, fun, tuple(by) if isinstance(by, list | tuple) else (by,))


class Differentiated:
    """Stands for what mx.value_and_grad returned. While nobody listens it is that function and a call in Python more."""

    def __init__(
        self,
        plain: Callable[..., Any],
        model: nn.Module | None,
        fun: Callable[..., Any] | None,
        by: tuple[int, ...] | None = None,
    ) -> None:
        """`fun` is the user's own. `by`: which of its arguments the gradient is taken of; None: they are all but the first."""
        self.plain, self.model, self.fun, self._by = plain, model, fun, by

    def of_the_users(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments as the user's function gets them."""
        return args[1:] if self._by is None else args

    def fed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """These, without what is learned."""
        return args[1:] if self._by is None else tuple(None if i in self._by else a for i, a in enumerate(args))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not LISTENERS or _compiling:
            return self._read(*args, **kwargs) if _compiling and LISTENERS else self.plain(*args, **kwargs)
        for listener in list(LISTENERS):
            listener.hear_gradient_begin(self, args, kwargs)
        # Whoever listens by now may have begun just then.
        heard = list(LISTENERS)
        try:
            value, gradients = result = self.plain(*args, **kwargs)
        except BaseException:
            for listener in heard:
                listener.hear_gradient_failed()
            raise
        for listener in heard:
            listener.hear_gradient(self, value, gradients)
        return result

    def _read(self, *args: Any, **kwargs: Any) -> Any:
        """MLX reads the function that it compiles: what the loss does is written down, once."""
        step = _compiling[-1]
        step.model = step.model or self.model
        if self.model is None or step.tape is not None:
            return self.plain(*args, **kwargs)
        step.tape = Tape(self.model)
        with step.tape.listening():
            return self.plain(*args, **kwargs)


def _cell_values(function: Any) -> dict[str, CellType]:
    if not isinstance(function, FunctionType):
        return {}
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _content(cell: CellType | None) -> Any:
    try:
        return None if cell is None else cell.cell_contents
    except ValueError:  # nothing is in it yet
        return None


def _taps_on_made() -> list[Callable[[], None]]:
    """What nn.value_and_grad returned before anybody listened: a function that holds mx.value_and_grad's in a cell."""
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


# Optimisers.


def _init(plain: Callable[..., None]) -> Callable[..., None]:
    def init(optimiser: Optimizer, *args: Any, **kwargs: Any) -> None:
        plain(optimiser, *args, **kwargs)
        for listener in list(LISTENERS):
            listener.hear_made(optimiser)

    return init


def _update(plain: Callable[..., Any]) -> Callable[..., Any]:
    def update(optimiser: Optimizer, model: Any, gradients: Any) -> Any:
        return _stepped(optimiser, model, gradients, lambda: plain(optimiser, model, gradients))

    return update


def _apply_gradients(plain: Callable[..., Any]) -> Callable[..., Any]:
    def apply_gradients(optimiser: Optimizer, gradients: Any, parameters: Any) -> Any:
        return _stepped(optimiser, parameters, gradients, lambda: plain(optimiser, gradients, parameters))

    return apply_gradients


def _stepped(optimiser: Optimizer, target: Any, gradients: Any, plain: Callable[[], Any]) -> Any:
    if not LISTENERS or _inside["step"] or _compiling:
        if _compiling:
            _compiling[-1].met(optimiser, target)
        return plain()
    _inside["step"] += 1
    try:
        for listener in list(LISTENERS):
            listener.hear_step_begin(optimiser, target, gradients)
        heard = list(LISTENERS)
        for listener in heard:
            listener.speak_up()
        after = plain()
        for listener in heard:
            listener.hear_step(optimiser, target, after)
    finally:
        _inside["step"] -= 1
    for listener in heard:
        listener.step_taken()
    return after


def _clip_grad_norm(grads: Any, *args: Any, **kwargs: Any) -> Any:
    for listener in () if _compiling else list(LISTENERS):
        listener.hear_clip(grads)
    return PLAIN_CLIP_GRAD_NORM(grads, *args, **kwargs)


def _loss(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    def loss(*args: Any, **kwargs: Any) -> Any:
        returned = plain(*args, **kwargs)
        for listener in () if _compiling else LISTENERS:
            listener.hear_loss(name, args, kwargs, returned)
        return returned

    return loss


# Compiled functions: what happens in them is not seen, what they are given and return is.


class Compiled:
    """Stands for what mx.compile returned."""

    def __init__(self, plain: Callable[..., Any]) -> None:
        self.plain = plain
        self.model: nn.Module | None = None
        self.optimiser: Optimizer | None = None
        self.tape: Tape | None = None

    @property
    def trains(self) -> bool:
        return self.model is not None and self.optimiser is not None

    def met(self, optimiser: Optimizer, target: Any) -> None:
        self.optimiser = self.optimiser or optimiser
        self.model = target if isinstance(target, nn.Module) else self.model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not LISTENERS or _compiling:
            return self.plain(*args, **kwargs)
        heard = list(LISTENERS)
        for listener in heard if self.trains else ():
            listener.hear_compiled_begin(self)
        _compiling.append(self)
        try:
            result = self.plain(*args, **kwargs)
        finally:
            _compiling.pop()
        for listener in heard if self.trains else ():
            listener.hear_compiled(self, args, kwargs, result)
        for listener in heard if self.trains else ():
            listener.step_taken()
        return result


def _compile(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    return Compiled(PLAIN_COMPILE(fun, *args, **kwargs))
