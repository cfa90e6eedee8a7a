"""What may be recorded of the user's loop beside its steps: one concern a recorder."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from sleuth.core.observation import Observation

T = TypeVar("T")

# An observation, or how to make some later: off the training thread.
Note = Observation | Callable[[], Iterable[Observation]]


class Recorder:
    """Overrides the events it wants: what is not overridden costs nothing. Runs inside the user's training, so it is cheap and
    leaves numbers and random states alone. One that raises is switched off, and the report names it."""

    def made(self, thing: Any) -> None:
        """An optimiser, a schedule or a loader was made."""

    def batch(self, source: Any, batch: Any) -> None:
        """A loader gives this batch."""

    def index(self, source: Any, positions: Any) -> None:
        """A loader drew these positions of its data set, maybe long before the batch comes."""

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is about to be called."""

    def output(self, output: Any) -> None:
        """What that call returned."""

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        """A loss function of the framework was called, by anybody."""

    def backward(self, loss: Any, options: Mapping[str, Any]) -> None:
        """Before a backward, or before a gradient is taken."""

    def backward_end(self, loss: Any) -> None:
        """After a backward that reached what is trained."""

    def backward_failed(self, loss: Any) -> None:
        """Instead of the end of a backward: it raised, whoever may catch that."""

    def before_step(self, number: int) -> None:
        """Optimiser `number` is about to write."""

    def after_step(self, number: int) -> None: ...

    def resumed(self) -> None:
        """Steps went by that this recorder was not told of: the light listener heard them."""

    def take(self) -> Sequence[Note]:
        """Once a step, at its end, and once after `close`: what was recorded since the last time."""
        return ()

    def close(self) -> None:
        """The watch ends."""


class Recorders:
    """All recorders of a watch; knows who overrides what."""

    EVENTS: ClassVar[tuple[str, ...]] = tuple(name for name in vars(Recorder) if not name.startswith("_"))

    def __init__(self, recorders: Iterable[Recorder], kind: type[Recorder] = Recorder, failed: list[str] | None = None) -> None:
        """`kind`: of a framework whose recorders are told of more than those of others. `failed`: a listener's remarks, where
        recorders that are switched off are to be named at once."""
        self.failed: list[str] = [] if failed is None else failed  # recorders that were switched off, and why
        events = dict.fromkeys((*self.EVENTS, *(name for name in vars(kind) if not name.startswith("_"))))
        self._methods: dict[str, list[tuple[Recorder, Callable[..., Any]]]] = {event: [] for event in events}
        for recorder in recorders:
            for event in events:
                if getattr(type(recorder), event) is not getattr(kind, event):
                    self._methods[event].append((recorder, getattr(recorder, event)))

    def wants(self, event: str) -> bool:
        return bool(self._methods[event])

    def tell(self, event: str, *args: Any) -> None:
        for recorder, method in self._methods[event]:
            try:
                method(*args)
            except Exception as error:
                self._switch_off(recorder, error)

    def take(self) -> tuple[Note, ...]:
        notes: list[Note] = []
        for recorder, take in self._methods["take"]:
            try:
                notes += take()
            except Exception as error:
                self._switch_off(recorder, error)
        return tuple(notes)

    def let_go(self) -> None:
        """The recorders may be collected, and what they know of the user's objects with them."""
        self._methods = {event: [] for event in self._methods}

    def _switch_off(self, failed: Recorder, error: Exception) -> None:
        self._methods = {event: [m for m in methods if m[0] is not failed] for event, methods in self._methods.items()}
        with contextlib.suppress(Exception):  # no hook of its own stays behind
            failed.close()
        self.failed.append(f"{type(failed).__name__} stopped recording: {type(error).__name__}: {error}")


def built(kinds: Iterable[Callable[[T], Recorder]], loop: T, failed: list[str]) -> list[Recorder]:
    """Those that can look at this model; why another one cannot goes to `failed`."""
    found = []
    for kind in kinds:
        try:
            found.append(kind(loop))
        except Exception as error:
            failed.append(f"{getattr(kind, '__name__', kind)} cannot record here: {type(error).__name__}: {error}")
    return found


def observations_of(notes: Iterable[Note]) -> Iterable[Observation]:
    """Off the training thread."""
    for note in notes:
        if isinstance(note, Observation):
            yield note
        else:
            yield from note()
