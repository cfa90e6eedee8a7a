"""What goes wrong while we listen never reaches the user's training."""

import functools
import time
from collections.abc import Callable
from typing import Any, ParamSpec

P = ParamSpec("P")


def contained(method: Callable[P, None]) -> Callable[P, None]:
    """What goes wrong ends the listening and is said; our own time is counted."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        watcher: Any = args[0]
        if watcher.gave_up is not None:
            return
        began = time.perf_counter()
        try:
            method(*args, **kwargs)
        except Exception as error:
            watcher.give_up(error)
        watcher.own_seconds += time.perf_counter() - began

    return call
