"""Hears every call of the model itself, through its class: nothing is set on the user's object."""

from collections.abc import Callable
from typing import Any

import mlx.nn as nn

from sleuth.adapters.mlx.hearing import replaced


def calls_heard(model: nn.Module, hear: Callable[[tuple[Any, ...]], None]) -> Callable[[], None]:
    """What it returns ends the listening."""
    plain = type(model).__call__

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if module is model:
            hear((*args, *kwargs.values()))
        return plain(module, *args, **kwargs)

    return replaced(type(model), "__call__", call)
