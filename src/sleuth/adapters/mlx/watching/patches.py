"""The places in MLX that every training passes: gradients, optimisers, compiled functions. Replaced while somebody listens."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx import optimizers
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx import created_at
from sleuth.adapters.mlx.pass_listener import LOSSES, replaced
from sleuth.adapters.mlx.watching.compiled import Compiled, compile_
from sleuth.adapters.mlx.watching.differentiated import Differentiated, taps_on_made, value_and_grad
from sleuth.adapters.mlx.watching.listeners import COMPILING, LISTENERS, Listener

__all__ = ["COMPILING", "LISTENERS", "Compiled", "Differentiated", "Listener", "forget", "is_compiling", "join", "leave"]

PLAIN_CLIP_GRAD_NORM = optimizers.clip_grad_norm

_undo: list[Callable[[], None]] = []
_inside = {"step": 0}


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
    _undo.append(replaced(mx, "value_and_grad", value_and_grad))
    _undo.append(replaced(mx, "compile", compile_))
    _undo.extend(created_at.listening())
    for owner in (optimizers, optimizers.optimizers):
        _undo.append(replaced(owner, "clip_grad_norm", _clip_grad_norm))
    for name in LOSSES:
        if hasattr(nn.losses, name):
            _undo.append(replaced(nn.losses, name, _loss(getattr(nn.losses, name), name)))
    for kind in _family(Optimizer):
        for name, tap in (("update", _update), ("apply_gradients", _apply_gradients), ("__init__", _init)):
            if name in vars(kind):
                _undo.append(replaced(kind, name, tap(vars(kind)[name])))
    _undo.extend(taps_on_made())


def _close() -> None:
    while _undo:
        _undo.pop()()


def is_compiling() -> bool:
    return bool(COMPILING)


def _family(kind: Any) -> list[Any]:
    return [kind, *(inner for child in kind.__subclasses__() for inner in _family(child))]


def _init(plain: Callable[..., None]) -> Callable[..., None]:
    def init(optimiser: Optimizer, *args: Any, **kwargs: Any) -> None:
        plain(optimiser, *args, **kwargs)
        created_at.note_made(optimiser)
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
    if not LISTENERS or _inside["step"] or COMPILING:
        if COMPILING:
            COMPILING[-1].met(optimiser, target)
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
    for listener in () if COMPILING else list(LISTENERS):
        listener.hear_clip(grads)
    return PLAIN_CLIP_GRAD_NORM(grads, *args, **kwargs)


def _loss(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    def loss(*args: Any, **kwargs: Any) -> Any:
        returned = plain(*args, **kwargs)
        for listener in () if COMPILING else LISTENERS:
            listener.hear_loss(name, args, kwargs, returned)
        return returned

    return loss
