"""What a case builds where its illness shows only while it is trained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sleuth.core.subject import Subject


@dataclass(frozen=True)
class Training:
    """For a case whose illness lies in the loop and not in its parts: so many steps are taken, then it ends."""

    subject: Subject
    steps: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of sleuth.watch


@dataclass(frozen=True)
class Loop:
    """A loop as a user writes it, for illnesses of the loop itself. `run` is given the watch, for `w.log(…)`, and comes
    to an end."""

    model: Any
    optimisers: Sequence[Any]
    run: Callable[[Any], None]
    options: Mapping[str, Any] = field(default_factory=dict)  # of sleuth.watch
    fails: bool = False  # it ends by an exception, which the watch is to explain
    # Without a word of sleuth's, where `run` itself names it, as around a step that is compiled.
    unwatched: Callable[[], None] | None = None
