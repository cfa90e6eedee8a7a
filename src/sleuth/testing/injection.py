"""An error in any part of ours, while a training runs: the training goes on as if nobody watched, and the report says it.

The parts are found, not listed. A training is watched once while `sys.settrace` notes every function of sleuth's that runs on the
training's thread; then it is watched again and again, each time with an error in the place of one call of one of them.

Left out, because errors are stopped or raised on purpose there: functions that the framework or the user's code calls itself,
which stand in the place of others or are registered as hooks, and those that carry the user's own call on (`carries_call`); all
of `adapters/listening/patches.py` (`tell`, `attempt`, `speak_up`); the wrapper that `contained` makes; methods called `speak_up`
and `leave_when_enough`; and what the user calls by name, such as `sleuth.watch_step(step)` and its `close`.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import sleuth
from sleuth.adapters.listening import listener, patches
from sleuth.core.contract.adapter import Adapter
from sleuth.testing.conformance.attributes import SLEUTH, Attributes, attributes, is_code, packages_of, replaced
from sleuth.testing.conformance.listening import spoiled_training
from sleuth.testing.conformance.rule import native, weights
from sleuth.testing.kit import Kit
from sleuth.testing.trainings import Loop, Training

STEPS, AT = 6, 4  # the last but one step meets a NaN, so that alarms are heard too
# A comprehension is a part of the function around it.
MAY_RAISE = ("speak_up", "leave_when_enough")
NO_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>")
FOLDERS = ("adapters", "session", "core", "kernel")
BY_NAME = str(Path(SLEUTH) / "watched_step.py")

Trace = Callable[[FrameType, str, Any], None]


class Injected(Exception):
    """Not the user's, and nobody of ours expects it."""


@dataclass(frozen=True)
class Part:
    """A function of ours, by where it is written: some are made anew at each watch."""

    file: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).relative_to(SLEUTH)}:{self.line} {self.name}"


@dataclass(frozen=True)
class Ended:
    """A training, and what its watch said."""

    weights: list[np.ndarray]
    notes: tuple[str, ...]
    error: Exception | None
    patched: Attributes = field(default_factory=dict)  # attributes that were replaced, as they were before
    stand_ins: frozenset[Part] = frozenset()  # functions of ours that stood in their place


@dataclass(frozen=True)
class Reference:
    """The training without a watch and with one, and every part that runs inside it, with how often."""

    plain: Ended
    clean: Ended
    parts: Mapping[Part, int]


def reference(adapter: Adapter, kit: Kit) -> Reference:
    counts: Counter[Part] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if (part := _part(frame)) is not None:
            counts[part] += 1

    plain = _trained(adapter, kit, note, watched=False)
    kits_own = set(counts)  # the loop calls them itself
    counts.clear()
    _trained(adapter, kit)  # what is done once in a process is done now
    clean = _trained(adapter, kit, note, search=True)
    assert clean.error is None, clean.error
    assert not _differ(plain, clean), "watching changes the weights"
    return Reference(plain, clean, {part: count for part, count in counts.items() if part not in clean.stand_ins | kits_own})


def broken_promises(adapter: Adapter, kit: Kit, given: Reference, chosen: Iterable[tuple[Part, int]]) -> list[str]:
    """What happens when the n-th call of a part raises; empty: the training never notices, and the report says it each time."""
    found = []
    for part, call in chosen:
        raising = _Raising(part, call)
        try:
            ended = _trained(adapter, kit, raising)
            # What depends on the clock may not be called as often this time.
            broken = _broken(given, ended) if raising.has_raised else ""
        except Exception as error:
            broken = f"the end of the watch raised {type(error).__name__}: {error}"
        found += [f"{part}, call {call}: {broken}"] if broken else []
    return found


def first_and_later_calls(parts: Mapping[Part, int]) -> list[tuple[Part, int]]:
    return [(part, call) for part, count in parts.items() for call in sorted({1, count // 2 + 1})]


def _broken(given: Reference, ended: Ended) -> str:
    if ended.error is not None:
        return f"the loop got {type(ended.error).__name__}: {ended.error}"
    if _differ(given.plain, ended):
        return "the weights are others"
    if left := _left(given.clean.patched):
        return f"left behind: {', '.join(left[:4])}"
    said = any(Injected.__name__ in note for note in ended.notes) or set(ended.notes) - set(given.clean.notes)
    return "" if said else "the report does not say it"


def _differ(one: Ended, other: Ended) -> bool:
    return not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one.weights, other.weights, strict=True))


class _Raising:
    def __init__(self, part: Part, call: int) -> None:
        self._part, self._call, self._calls = part, call, 0
        self.has_raised = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_firstlineno != self._part.line or _part(frame) != self._part:
            return
        self._calls += 1
        if self._calls == self._call:  # Python ends the tracing when a trace function raises
            self.has_raised = True
            raise Injected(f"in {self._part.name}")


def _part(frame: FrameType) -> Part | None:
    code = frame.f_code
    if not code.co_filename.startswith(SLEUTH) or code.co_name in NO_PARTS or not _is_inside(frame):
        return None
    folder = Path(code.co_filename).relative_to(SLEUTH).parts[0]
    is_boundary = code in BOUNDARY or code.co_filename == patches.__file__ or code.co_name in MAY_RAISE
    return None if folder not in FOLDERS or is_boundary or _is_called_from_outside(frame) else _named(code)


def _is_called_from_outside(frame: FrameType) -> bool:
    """By the framework or by the user: it is a patch, or a hook. Those that carry the user's call on belong to it."""
    if frame.f_code in patches.CARRIERS:
        return True
    caller = frame.f_back
    return caller is None or not caller.f_code.co_filename.startswith(SLEUTH)


def _named(code: CodeType) -> Part:
    return Part(code.co_filename, code.co_qualname, code.co_firstlineno)


# The wrapper inside `contained`: it holds the errors of what it wraps.
BOUNDARY = {code for code in listener.contained.__code__.co_consts if isinstance(code, CodeType)}


def _is_inside(frame: FrameType | None) -> bool:
    """Not in a call of sleuth's own that the user wrote, unless that is the watched step itself."""
    while frame is not None:
        if frame.f_code.co_filename == BY_NAME:
            return frame.f_code.co_name == "__call__"
        frame = frame.f_back
    return True


def _trained(adapter: Adapter, kit: Kit, trace: Trace | None = None, *, watched: bool = True, search: bool = False) -> Ended:
    """`search`: what is patched is looked for in everything that the framework has, which takes a while."""
    training = spoiled_training(kit, STEPS, AT)
    loop = kit.loop(training)
    if not watched:
        error = _run(loop, None, trace)
        return Ended(_weights(adapter, training), (), error)
    things = [loop.model, *loop.optimisers]
    packages = packages_of(kit, loop, native(kit, np.zeros((1, 1), np.float32))) if search else set()
    before = attributes(packages, things)
    w = sleuth.watch(loop.model, list(loop.optimisers), every=1, directory=None, quiet=True)
    try:
        error = _run(loop, w, trace)
        during = attributes(packages, things)
    finally:
        w.close()
    with warnings.catch_warnings(action="ignore"):  # what is deprecated says so when it is looked at
        patched, stand_ins = _patched(before, during), _stand_ins(before, during)
    return Ended(_weights(adapter, training), w.notes, error, patched, stand_ins)


def _run(loop: Loop, w: Any, trace: Trace | None) -> Exception | None:
    """What left the loop. Only this thread is traced."""
    usual = sys.gettrace()
    try:
        with np.errstate(all="ignore"):
            sys.settrace(trace)
            if w is None and loop.unwatched is not None:
                loop.unwatched()
            else:
                loop.run(w)
    except Exception as error:
        return error
    finally:
        sys.settrace(usual)
    return None


def _weights(adapter: Adapter, training: Training) -> list[np.ndarray]:
    with adapter.bench(training.subject) as bench:  # type: ignore[attr-defined]
        return list(weights(adapter, bench).values())


def _patched(before: Attributes, during: Attributes) -> Attributes:
    """As it was before."""
    return {
        place: (owner, value)
        for place, (owner, value) in before.items()
        if during.get(place, (None, None))[1] is not value and is_code(value)
    }


def _stand_ins(before: Attributes, during: Attributes) -> frozenset[Part]:
    functions = (getattr(value, "__func__", value) for value in replaced(before, during))
    codes = (getattr(function, "__code__", None) for function in functions)
    return frozenset(_named(code) for code in codes if code is not None and code.co_filename.startswith(SLEUTH))


def _left(patched: Attributes) -> list[str]:
    """They are put back: the next part is tried on its own."""
    left = [(owner, name, value) for (_, name), (owner, value) in patched.items() if vars(owner).get(name) is not value]
    for owner, name, value in left:
        setattr(owner, name, value)
    return [f"{owner!r:.60}.{name}" for owner, name, _ in left]
