"""Where a script made a layer, an optimiser, a schedule or a loader, gave weights their values and set a mode: noted when that
happens, since afterwards nobody knows. Nothing is kept alive and nothing is hung on the user's objects."""

import functools
import inspect
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader

from sleuth.adapters.listening.patches import Function, Patch
from sleuth.adapters.torch.place import TORCH, is_users
from sleuth.core.location import Location, Spot

# Whoever makes layers at every step is not followed for ever.
MOST_NOTED = 20_000
MOST_SPOTS = 4
MOST_FRAMES = 64
MOST_MODES = 16


@dataclass(frozen=True)
class Made:
    thing: "weakref.ref[Any]"
    order: int
    spots: tuple[Spot, ...]  # the user's, innermost first

    @property
    def location(self) -> Location | None:
        return self.spots[0].location if self.spots else None


_made: dict[int, Made] = {}
_given: dict[int, Made] = {}  # weights whose first values the user has set
# The hash of a code object is slow; its address does.
_modes: dict[int, tuple["weakref.ref[Any]", dict[tuple[int, int], tuple[Spot, bool]]]] = {}
_count = 0
_listening = 0


class Listening:
    """If another library wrapped one of our patches we cannot remove it; it notes nothing unless one of these is open."""

    def __init__(self) -> None:
        global _listening, _count
        _listening, _count = _listening + 1, 0

    def remove(self) -> None:
        global _listening
        _listening -= 1


def made(thing: Any) -> Made | None:
    return _known(_made, thing)


def note_made(thing: Any) -> None:
    _note(_made, thing, sys._getframe(1))


def made_at(thing: Any) -> Location | None:
    found = made(thing)
    return None if found is None else found.location


def values_set_at(parameter: Any) -> Location | None:
    found = _known(_given, parameter)
    return None if found is None else found.location


def modes_of(module: nn.Module) -> list[tuple[Spot, bool]]:
    """From where its mode was set, the latest last: True means training."""
    ref, spots = _modes.get(id(module), (None, {}))
    return list(spots.values()) if ref is not None and ref() is module else []


def open_patches() -> list[Patch | Listening]:
    """The constructor of optimisers is patched already: whoever is told of one calls `note_made`."""
    found: list[Patch | Listening] = [Listening(), Patch(nn.Module, "__init__", _making), Patch(nn.Module, "train", _switching)]
    found += [Patch(cls, "__init__", _making) for cls in _schedulers()]
    found.append(Patch(DataLoader, "__init__", _loading))
    names = [name for name in vars(nn.init) if name.endswith("_") and not name.startswith("_")]
    return found + [Patch(nn.init, name, _setting) for name in names]


def _schedulers() -> list[type]:
    kinds = [cls for cls in vars(lr_scheduler).values() if isinstance(cls, type)]
    own = [cls for cls in dict.fromkeys(kinds) if issubclass(cls, lr_scheduler.LRScheduler) or cls.__name__.endswith("LR")]
    return [cls for cls in own if "__init__" in vars(cls)]


def _making(original: Function) -> Function:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            _note(_made, self, sys._getframe(1))
        original(self, *args, **kwargs)

    return make


def _loading(original: Function) -> Function:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        # An iterator knows what draws its indices, not the loader.
        for thing in (self, getattr(self, "batch_sampler", None), getattr(self, "sampler", None)):
            if thing is not None:
                _note(_made, thing, sys._getframe(1), self)

    return make


def _setting(original: Function) -> Function:
    def init(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if not frame.f_code.co_filename.startswith(TORCH) and not torch.compiler.is_compiling():
            _note(_given, args[0] if args else kwargs.get("tensor"), frame)
        return original(*args, **kwargs)

    return init


def _switching(original: Function) -> Function:
    inner = getattr(inspect.unwrap(original), "__code__", None)

    def train(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        # For its parts a module calls this by itself.
        if frame.f_code is not inner:
            _note_mode(self, bool(args[0] if args else kwargs.get("mode", True)), frame)
        return original(self, *args, **kwargs)

    return train


def _note(notes: dict[int, Made], thing: Any, frame: FrameType, maker: Any = None) -> None:
    global _count
    key = id(thing)
    try:
        # A class may call the constructors of several others.
        if not _listening or _count >= MOST_NOTED or (notes is _made and _known(notes, thing) is not None):
            return
        ref = weakref.ref(thing, functools.partial(_forget, notes, key))
        _count += 1
        notes[key] = Made(ref, _count, tuple(_spots(frame, thing if maker is None else maker)))
    except Exception:  # the user's code goes on
        notes.pop(key, None)


def _forget(notes: dict[int, Made], key: int, ref: "weakref.ref[Any]") -> None:
    found = notes.get(key)
    if found is not None and found.thing is ref:
        del notes[key]


def _forget_modes(key: int, ref: "weakref.ref[Any]") -> None:
    if _modes.get(key, (None,))[0] is ref:
        del _modes[key]


def _note_mode(module: Any, training: bool, frame: FrameType) -> None:
    if not _listening:
        return
    try:
        outer: FrameType | None = frame
        while outer is not None and outer.f_code.co_filename.startswith(TORCH):
            outer = outer.f_back
        if outer is None or not _is_users(outer.f_code.co_filename):
            return
        ref, spots = _modes.get(id(module), (None, {}))
        if ref is None or ref() is not module:
            ref, spots = weakref.ref(module, functools.partial(_forget_modes, id(module))), {}
            _modes[id(module)] = (ref, spots)
        key = (id(outer.f_code), outer.f_lasti)
        spots.pop(key, None)
        if len(spots) < MOST_MODES:
            spots[key] = Spot(outer.f_code, outer.f_lasti), training
    except Exception:  # the user's code goes on
        return


def _spots(frame: FrameType | None, thing: Any) -> Iterator[Spot]:
    found = 0
    for _ in range(MOST_FRAMES):
        if frame is None or found == MOST_SPOTS:
            return
        code = frame.f_code
        # The constructors of its own class are not where it is made.
        if _is_users(code.co_filename) and not (code.co_name == "__init__" and _owner(frame) is thing):
            found += 1
            yield Spot(code, frame.f_lasti)
        frame = frame.f_back


def _owner(frame: FrameType) -> Any:
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if names else None


def _known(notes: dict[int, Made], thing: Any) -> Made | None:
    found = notes.get(id(thing))
    return found if found is not None and found.thing() is thing else None


_is_users = functools.lru_cache(maxsize=1024)(is_users)
