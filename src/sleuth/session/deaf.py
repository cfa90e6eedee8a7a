"""Stands in for a watch that could not begin: the user's training goes on as if nobody had asked to watch it."""

from collections.abc import Callable

from sleuth.core.contract.adapter import Watching
from sleuth.core.errors import Stopped, Unsupported, UnusableInput
from sleuth.core.observation import Observation


class DeafWatching(Watching):
    def __init__(self, error: Exception) -> None:
        self.trouble = f"{type(error).__name__}: {error}"

    def open(self) -> None: ...

    def close(self) -> None: ...

    def drain(self) -> list[Observation]:
        return []

    def explain(self, error: BaseException) -> list[Observation]:
        return []


def watching_or_deaf(begin: Callable[[], Watching]) -> Watching:
    """What the user asked wrongly is said to the user. Any other error is ours or comes from a model that cannot be looked at: it
    stands in the report, and never ends the training."""
    try:
        return begin()
    except (UnusableInput, Unsupported, Stopped):
        raise
    except Exception as error:
        return DeafWatching(error)
