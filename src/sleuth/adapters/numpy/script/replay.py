"""Does a step of the script again, after its end: the same statements, with other weights."""

import io
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.adapters.numpy.script.loop import Loop
from sleuth.adapters.numpy.script.losses import LossChoice
from sleuth.adapters.numpy.script.operands import fitting, operands_of, rate_in
from sleuth.adapters.numpy.script.slots import Event, Slot, arrays_in
from sleuth.adapters.numpy.state import Snapshot, put_back, remember
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.source.loading import Hook

# What a step done again must not do: it would be done twice.
FORBIDDEN = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.system", "os.fork", "os.exec", "os.kill", "os.truncate",
             "shutil.", "socket.", "subprocess.", "sqlite3.", "urllib.", "smtplib.")  # fmt: skip
# Bytes of an array that a step may change: larger ones are data.
LARGEST = 8 << 20
_replaying: set[int] = set()  # threads
_guarded: list[bool] = []


class StepTaken(BaseException):
    """Ends the step that is done again. Not an Exception: the user's own handlers let it pass."""


@dataclass
class Taken:
    told: list[tuple[int, Any]] = field(default_factory=list)
    events: dict[str, Event] = field(default_factory=dict)


class Replay:
    """Everything is put back after each step, the weights apart, which are as they were written."""

    def __init__(self, loop: Loop, slots: list[Slot], losses: LossChoice, hook: Hook) -> None:
        self._loop, self._losses, self._hook = loop, losses, hook
        self._slots = {slot.name: slot for slot in slots}
        self._space: dict[str, Any] = loop.globals if loop.in_globals else {**loop.globals, **loop.space}
        self._end = dict(loop.globals)
        self._start = self.snapshot()
        if loop.in_globals:
            loop.globals.update(loop.space)
        for holder, key, weights in loop.lists:
            holder[key] = weights
        self.weights = {name: [holder[key] for holder, key in places] for name, places in loop.places.items()}

    def snapshot(self) -> Snapshot:
        return remember(self._loop.space, self._space, largest=LARGEST)

    def restore(self, snapshot: Snapshot) -> None:
        put_back(snapshot)

    def close(self) -> None:
        put_back(self._start)
        self._loop.globals.clear()
        self._loop.globals.update(self._end)

    def loss(self) -> float:
        taken = self._run(until_update=True)
        found = self._losses.of_again(taken.told)
        if found is None:
            raise Unsupported("no loss is computed in a step before its weights are updated")
        return found

    def step(self) -> dict[str, Event]:
        return self._run(until_update=False).events

    def _run(self, *, until_update: bool) -> Taken:
        before = self.snapshot()
        taken = Taken()
        waiting = list(self._loop.order)
        sites = {site for site, _ in waiting}
        stash: dict[int, Any] = {}

        def begin(number: int, value: Any) -> None:
            if number in sites:
                if until_update:
                    raise StepTaken
                stash[number] = {key: np.array(array) for key, array in arrays_in(value)}

        def end(number: int, value: Any, owner: Any = None, key: Any = None) -> None:
            if number not in sites:
                return
            own = [name for site, name in self._loop.order if site == number]
            values = operands_of(self._slots[own[0]].update, sys._getframe(1))
            arrays = dict(arrays_in(value))
            for inner, array in arrays.items():
                was = stash.get(number, {}).get(inner)
                place = next((i for i, (site, name) in enumerate(waiting) if site == number and self._fits(name, array)), None)
                if was is None or place is None:
                    continue
                name = waiting.pop(place)[1]
                operands = fitting(values, inner if inner is not None else key, array.shape)
                taken.events[name] = Event(self._slots[name], was, np.array(array), operands, rate_in(values))
            if not waiting:
                raise StepTaken

        def told(number: int, value: Any) -> None:
            taken.told.append((number, np.array(value) if isinstance(value, np.ndarray) else value))

        def told_before(number: int, value: Any) -> None:
            told(~number, value)

        def passed(number: int, value: Any) -> Any:
            told(number, value[0] if isinstance(value, tuple) and value else value)
            return value

        hook = self._hook
        try:
            with contained():
                hook.before, hook.after, hook.told, hook.told_before, hook.passed = begin, end, told, told_before, passed
                exec(self._loop.code, self._space)
        except StepTaken:
            pass
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise Unsupported(f"a step could not be done again: {type(error).__name__}: {error}") from None
        finally:
            hook.silence()
            put_back(before)
        return taken

    def _fits(self, name: str, array: np.ndarray) -> bool:
        return self._slots[name].shape == array.shape


@contextmanager
def contained() -> Iterator[None]:
    """Nothing of it is seen outside: neither printed nor written to a file."""
    if not _guarded:
        _guarded.append(True)
        sys.addaudithook(_guard)
    streams = sys.stdout, sys.stderr, sys.stdin
    me = threading.get_ident()
    _replaying.add(me)
    try:
        sys.stdout, sys.stderr, sys.stdin = io.StringIO(), io.StringIO(), io.StringIO()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout, sys.stderr, sys.stdin = streams
        _replaying.discard(me)


def _guard(event: str, args: tuple[Any, ...]) -> None:
    if not _replaying or threading.get_ident() not in _replaying:
        return
    if event.startswith(FORBIDDEN) or (event == "open" and isinstance(args[1], str) and any(c in args[1] for c in "wax+")):
        raise PermissionError(f"{event}: a step that is done again leaves everything outside as it is")
