"""A training that is watched, whatever its framework."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

# One element a step: whoever holds them says when the next step may be taken.
Turns = Iterable[None]


@dataclass(frozen=True)
class Training:
    plain: Callable[[Turns], None]
    watched: Callable[..., Any]  # the same with options of sleuth.watch; returns the report
    model: Any = None
    step: Callable[[], Any] | None = None  # what other tools wrap


def looped(model: Any, optimiser: Any, step: Callable[[], Any]) -> Training:
    """A loop of the user's own, and a watch around it."""

    def plain(turns: Turns) -> None:
        for _ in turns:
            step()

    def watched(turns: Turns, **options: Any) -> Any:
        import sleuth

        with sleuth.watch(model, optimiser, **options) as watch:
            plain(turns)
        return watch.report()

    return Training(plain, watched, model, step)
