"""Listening to a loop of the user's own, and what comes of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.contract.scene import Replayed, Scene
from sleuth.core.observation import Observation
from sleuth.core.subject import Subject


class Watching(ABC):
    """One watch of the user's own loop. What it notes waits until `drain`, which another thread may call."""

    own_seconds: float = 0.0  # spent inside the user's training
    steps: int = 0
    looks: int = 0  # steps that were looked at in full
    dropped: int = 0  # steps that were left out because nobody drained
    trouble: str | None = None  # why it stopped listening before its end
    remarks: tuple[str, ...] = ()  # what could not be listened to

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Every hook is gone afterwards, whatever happened."""

    @abstractmethod
    def drain(self) -> list[Observation]:
        """What was noted since the last time."""

    def take_kept(self) -> Kept | None:
        """After `close`, once: what was kept of the model and of the data that passed by."""
        return None

    @abstractmethod
    def explain(self, error: BaseException) -> list[Observation]:
        """What is behind an exception that leaves the loop: a `Crash`, and what is known of it. Before `close`."""


class Watches(ABC):
    @abstractmethod
    def watch(
        self,
        model: Any,
        optimisers: Sequence[Any],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> Watching:
        """`keeps`: some of what passes by is kept for an examination after the end, see `Watching.take_kept`."""


class WrapsSteps(ABC):
    """Of a framework whose steps are compiled functions: those that were compiled already cannot be heard from outside."""

    @abstractmethod
    def listened(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The same step, such that a watch hears it. Raises UnusableInput where it is none."""


@dataclass(frozen=True)
class Discovered:
    """A training that has begun somewhere in the user's code: what is stepped, and by whom."""

    model: Any
    optimisers: tuple[Any, ...]
    name: str


class Attended(ABC):
    """A watch that was opened for a training that was discovered."""

    @property
    @abstractmethod
    def steps(self) -> int: ...

    @abstractmethod
    def end(self) -> None:
        """Another training has taken its place."""

    @abstractmethod
    def drop(self) -> None:
        """It had not begun yet, and is taken up again together with another: nothing of it is kept."""


class Discovering(ABC):
    """Listens for trainings that begin, whoever begins them."""

    trouble: str | None = None  # why it stopped listening before its end
    missed: int = 0  # trainings that began after enough others
    remarks: tuple[str, ...] = ()  # what it could not note while it listened

    @abstractmethod
    def open(self, *, found_already: bool = False) -> None:
        """`found_already`: what was made before now counts as well."""

    @abstractmethod
    def close(self) -> None:
        """Every hook is gone afterwards."""


class Discovers(ABC):
    @abstractmethod
    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        """`begin` is called before the first step of a training; it opens a watch. After `steps` steps in all the loop is left by
        `EnoughSteps`."""


class Explains(ABC):
    @abstractmethod
    def explain(self, error: BaseException) -> list[Observation]:
        """What is behind an exception of the user's code that no watch was open for: a `Crash`, and what is known of it."""


class Replays(ABC):
    @abstractmethod
    def replay(self, subject: Subject, scene: Scene) -> Replayed:
        """Does the scene's step again with the subject's model, which takes the scene's weights. Raises UnusableInput where the
        scene and the model do not go together."""
