"""Hears every call of a model itself, through its class: nothing is set on the user's object."""

from collections.abc import Callable
from typing import Any

import mlx.nn as nn

from sleuth.adapters.mlx.pass_listener import replaced

Hear = Callable[[tuple[Any, ...], dict[str, Any]], None]
Answered = Callable[[Any], None]
Ears = tuple[Hear, Answered]

# Several models of one class may be listened to, and not the last that came must be the first to go.
_HEARD: dict[type, tuple[dict[int, Ears], Callable[[], None]]] = {}


def calls_heard(model: nn.Module, hear: Hear, answered: Answered) -> Callable[[], None]:
    """What it returns ends the listening."""
    kind, key = type(model), id(model)
    if kind not in _HEARD:
        _HEARD[kind] = _tapped(kind)
    listening, undo = _HEARD[kind]
    listening[key] = (hear, answered)

    def end() -> None:
        listening.pop(key, None)
        if not listening and _HEARD.get(kind, (None,))[0] is listening:
            undo()
            del _HEARD[kind]

    return end


def _tapped(kind: type) -> tuple[dict[int, Ears], Callable[[], None]]:
    plain = kind.__call__
    listening: dict[int, Ears] = {}

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        ears = listening.get(id(module))
        if ears is None:
            return plain(module, *args, **kwargs)
        ears[0](args, kwargs)
        output = plain(module, *args, **kwargs)
        ears[1](output)
        return output

    return listening, replaced(kind, "__call__", call)
