"""Where a script made a layer, an optimiser or a schedule, and set a mode or a type: noted when that happens, since afterwards
nobody knows.

Nothing is kept alive, and nothing is hung on the user's objects.
"""

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx import optimizers
from mlx.optimizers import schedulers

from sleuth.adapters.listening.patches import Patch, attempt
from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.user_line import users_line
from sleuth.adapters.mlx.watching.listeners import lost
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users

SCHEDULES = ("exponential_decay", "step_decay", "cosine_decay", "join_schedules", "linear_schedule")
# Whoever makes layers at every step is not followed for ever.
MOST_NOTED = 20_000
MOST_FRAMES = 64

Spot = tuple[str, int]
_made: dict[int, "tuple[weakref.ref[Any], Spot]"] = {}
_modes: dict[int, "tuple[weakref.ref[Any], dict[bool, Location | None]]"] = {}
_narrowed: dict[int, "tuple[weakref.ref[Any], Location | None]"] = {}
NARROW = (mx.float16, mx.bfloat16)
_lose_line = lost("the line of a call could not be told")


def patches() -> list[Patch]:
    found = [Patch(nn.Module, "__init__", _init), Patch(nn.Module, "train", _train), Patch(nn.Module, "apply", _apply)]
    for owner in (optimizers, schedulers):
        found += [Patch(owner, name, _schedule) for name in SCHEDULES if hasattr(owner, name)]
    return found


def line_of(thing: Any) -> Location | None:
    """Where it was made."""
    found = _made.get(id(thing))
    return locate(*found[1]) if found is not None and found[0]() is thing else None


def mode_lines(model: nn.Module) -> dict[bool, Location | None]:
    """True: where it was last put into training mode, False: into the other."""
    found = _modes.get(id(model))
    return found[1] if found is not None and found[0]() is model else {}


def narrowing_line(model: nn.Module) -> Location | None:
    """Where its weights, or those of a part of it, were first made half as wide."""
    for _, module in modules(model):
        found = _narrowed.get(id(module))
        if found is not None and found[0]() is module:
            return found[1]
    return None


def note_made(thing: Any) -> None:
    """Just now: the user's line is the one that makes it."""
    spot = _spot(sys._getframe(1), thing)
    if spot is not None:
        _note(thing, spot)


def hand_on(old: nn.Module, new: nn.Module) -> None:
    """A copy has the lines of what it was copied from."""
    for (_, one), (_, other) in zip(modules(old), modules(new), strict=False):
        found = _made.get(id(one))
        if found is not None and found[0]() is one:
            _note(other, found[1])


def _note(thing: Any, spot: Spot) -> None:
    if len(_made) >= MOST_NOTED:
        for key in [key for key, (ref, _) in _made.items() if ref() is None]:
            del _made[key]
    if len(_made) < MOST_NOTED:
        _made[id(thing)] = (weakref.ref(thing), spot)


def _init(plain: Callable[..., None]) -> Callable[..., None]:
    def init(module: nn.Module, *args: Any, **kwargs: Any) -> None:
        plain(module, *args, **kwargs)
        attempt(_lose_line, _note_module, module)

    return init


def _note_module(module: nn.Module) -> None:
    # What stands for a tree of the user's is made by us.
    if not type(module).__module__.startswith("sleuth."):
        note_made(module)


def _train(plain: Callable[..., Any]) -> Callable[..., Any]:
    def train(module: nn.Module, mode: bool = True) -> Any:
        answer = plain(module, mode)
        attempt(_lose_line, _note_mode, module, bool(mode))
        return answer

    return train


def _note_mode(module: nn.Module, mode: bool) -> None:
    if id(module) not in _modes or _modes[id(module)][0]() is not module:
        _modes[id(module)] = (weakref.ref(module), {})
    lines = _modes[id(module)][1]
    if mode not in lines:
        lines[mode] = users_line()


def _apply(plain: Callable[..., Any]) -> Callable[..., Any]:
    """`set_dtype` comes by here, too."""

    def apply(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        answer = plain(module, *args, **kwargs)
        attempt(_lose_line, _note_narrowing, module)
        return answer

    return apply


def _note_narrowing(module: nn.Module) -> None:
    known = id(module) in _narrowed and _narrowed[id(module)][0]() is module
    if not known and any(e.array.dtype in NARROW for e in parameters(module)):
        _narrowed[id(module)] = (weakref.ref(module), users_line())


def _schedule(plain: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        schedule = plain(*args, **kwargs)
        attempt(_lose_line, note_made, schedule)
        return schedule

    return make


def _spot(frame: FrameType | None, thing: Any) -> Spot | None:
    """The user's innermost line outside of the thing's own constructors."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        own = code.co_name == "__init__" and frame.f_locals.get(code.co_varnames[0]) is thing
        if not own and is_users(code.co_filename):
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None
