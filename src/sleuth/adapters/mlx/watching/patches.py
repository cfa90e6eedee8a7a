"""The places in MLX that every training passes: gradients, optimisers, losses, compiled functions and calls of the model itself.
Replaced while somebody listens."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx import optimizers
from mlx.optimizers import Optimizer

from sleuth.adapters.listening.patches import Patch, attempt, carries_call, put_back, speak_up, tell
from sleuth.adapters.mlx import created_at
from sleuth.adapters.mlx.pass_listener import LOSSES
from sleuth.adapters.mlx.watching.compiled import patched_compile
from sleuth.adapters.mlx.watching.differentiated import patched_cells, patched_value_and_grad
from sleuth.adapters.mlx.watching.listeners import COMPILING, LISTENERS, lose_reading, lost

Function = Callable[..., Any]
Asked = Callable[[tuple[Any, ...], dict[str, Any]], None]
Answered = Callable[[Any], None]

_removals: list[Callable[[], None]] = []
_inside = {"step": 0}
_lose_call = lost("a call of the model could not be heard")
_lose_line = lost("the line that made an optimiser could not be told")
# Several models of one class may be listened to, and not the last that came must be the first to go.
_CALLED: dict[type, tuple[dict[int, tuple[Asked, Answered]], Patch]] = {}


def join(listener: Any) -> None:
    if not LISTENERS:
        _open()
    LISTENERS.append(listener)


def leave(listener: Any) -> None:
    LISTENERS[:] = [other for other in LISTENERS if other is not listener]
    if not LISTENERS:
        _close()


def forget() -> None:
    """In a child made by fork: nobody drains there."""
    LISTENERS.clear()
    _close()


def listen_to_calls(model: nn.Module, asked: Asked, answered: Answered) -> Callable[[], None]:
    """Of this model, through its class: nothing is set on the user's object. What it returns ends the listening."""
    kind, key = type(model), id(model)
    if kind not in _CALLED:
        told: dict[int, tuple[Asked, Answered]] = {}
        _CALLED[kind] = (told, Patch(kind, "__call__", lambda plain: _model_call(plain, told)))
    listening, patch = _CALLED[kind]
    listening[key] = (asked, answered)

    def end() -> None:
        listening.pop(key, None)
        if not listening and _CALLED.get(kind, (None,))[0] is listening:
            patch.remove()
            del _CALLED[kind]

    return end


def _open() -> None:
    patches = [Patch(mx, "value_and_grad", patched_value_and_grad), Patch(mx, "compile", patched_compile)]
    patches += created_at.patches()
    patches += [Patch(owner, "clip_grad_norm", _clip_grad_norm) for owner in (optimizers, optimizers.optimizers)]
    patches += [Patch(nn.losses, name, _loss(name)) for name in LOSSES if hasattr(nn.losses, name)]
    for kind in _family(Optimizer):
        makes = (("update", _update), ("apply_gradients", _apply_gradients), ("__init__", _init))
        patches += [Patch(kind, name, make) for name, make in makes if name in vars(kind)]
    _removals.extend(patch.remove for patch in patches)
    _removals.extend(patched_cells())


def _close() -> None:
    removals = _removals[::-1]
    _removals.clear()
    put_back(*removals, Patch.remove_covered)


def _family(kind: Any) -> list[Any]:
    return [kind, *(inner for child in kind.__subclasses__() for inner in _family(child))]


def _model_call(plain: Function, told: dict[int, tuple[Asked, Answered]]) -> Function:
    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        listener = told.get(id(module))
        if listener is None:
            return plain(module, *args, **kwargs)
        attempt(_lose_call, listener[0], args, kwargs)
        output = plain(module, *args, **kwargs)
        attempt(_lose_call, listener[1], output)
        return output

    return call


def _init(plain: Function) -> Function:
    def init(optimiser: Optimizer, *args: Any, **kwargs: Any) -> None:
        plain(optimiser, *args, **kwargs)
        attempt(_lose_line, created_at.note_made, optimiser)
        tell(LISTENERS, "hear_made", optimiser)

    return init


def _update(plain: Function) -> Function:
    def update(optimiser: Optimizer, model: Any, gradients: Any) -> Any:
        return _stepped(plain, (optimiser, model, gradients), model, gradients)

    return update


def _apply_gradients(plain: Function) -> Function:
    def apply_gradients(optimiser: Optimizer, gradients: Any, parameters: Any) -> Any:
        return _stepped(plain, (optimiser, gradients, parameters), parameters, gradients)

    return apply_gradients


@carries_call
def _stepped(plain: Function, args: tuple[Any, ...], target: Any, gradients: Any) -> Any:
    optimiser = args[0]
    if COMPILING:
        attempt(lose_reading, COMPILING[-1].met, optimiser, target)
    if not LISTENERS or _inside["step"] or COMPILING:
        return plain(*args)
    _inside["step"] += 1
    try:
        tell(LISTENERS, "hear_step_begin", optimiser, target, gradients)
        told = list(LISTENERS)
        speak_up(told)
        after = plain(*args)
        tell(told, "hear_step", optimiser, target, after)
    finally:
        _inside["step"] -= 1
    for listener in told:
        listener.leave_when_enough()
    return after


def _clip_grad_norm(plain: Function) -> Function:
    def clip_grad_norm(grads: Any, *args: Any, **kwargs: Any) -> Any:
        if not COMPILING:
            tell(LISTENERS, "hear_clip", grads)
        return plain(grads, *args, **kwargs)

    return clip_grad_norm


def _loss(name: str) -> Callable[[Function], Function]:
    def make(plain: Function) -> Function:
        def loss(*args: Any, **kwargs: Any) -> Any:
            returned = plain(*args, **kwargs)
            if not COMPILING:
                tell(LISTENERS, "hear_loss", name, args, kwargs, returned)
            return returned

        return loss

    return make
