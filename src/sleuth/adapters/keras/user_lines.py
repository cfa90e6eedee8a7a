"""Lines of the user's: the one that runs now, and where things were made, frozen and compiled, if that was seen.

A line is noted as an instruction of a code object and looked up only when somebody asks for it."""

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import keras

from sleuth.adapters.keras.patches import Function, Make, replaced
from sleuth.adapters.listening.patches import attempt
from sleuth.core.location import Location, Spot, locate
from sleuth.core.runtime.place import DONE_AGAIN, is_users

# What stands above this is not what runs the model but who asked for an examination.
BENCH = str(Path(__file__).with_name("bench.py"))
# Whoever calls these asks for a training: what goes on inside is done by Keras, or by methods of the user's below them.
ENTRIES = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")
LINE_LOST = "the line of something that was made, compiled or frozen could not be noted"
_ENTERED = tuple(inspect.unwrap(getattr(keras.Model, name)).__code__ for name in ENTRIES)


Failed = Callable[[Exception], None]
Notes = weakref.WeakKeyDictionary[Any, Spot]
_MADE: Notes = weakref.WeakKeyDictionary()
_COMPILED: Notes = weakref.WeakKeyDictionary()
_FROZEN: Notes = weakref.WeakKeyDictionary()
# Of a layer: its own variable of this number, among those that learn or those that do not.
_WEIGHTS: weakref.WeakKeyDictionary[Any, dict[tuple[bool, int], Spot]] = weakref.WeakKeyDictionary()

_is_users = functools.lru_cache(maxsize=1024)(is_users)


def line_now(below: FrameType | None = None) -> Location | None:
    """The innermost line of the user's that computes, seen from a listener of ours; `below` this frame, and never the one that
    only asks for a training."""
    if DONE_AGAIN:
        return DONE_AGAIN[-1]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not below and frame.f_code.co_filename != BENCH and not _enters(frame.f_code):
        if _is_users(frame.f_code.co_filename):
            return locate(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def spot_now() -> Spot | None:
    """The innermost one of the user's, also where that only asks for a training."""
    return _users_spot(sys._getframe(1))


def located(spot: Spot | None) -> Location | None:
    if spot is None:
        return None
    return DONE_AGAIN[-1] if DONE_AGAIN else spot.location


def made_at(thing: Any) -> Location | None:
    return _noted_in(_MADE, thing)


def made_things(kind: type) -> list[Any]:
    """Those of them that are still there."""
    return [thing for thing in list(_MADE) if isinstance(thing, kind)]


def made_spot(thing: Any) -> Spot | None:
    return _spot_in(_MADE, thing)


def compiled_spot(model: Any) -> Spot | None:
    return _spot_in(_COMPILED, model)


def weight_spot(layer: Any, variable: Any) -> Spot | None:
    """Where the user's own code has asked the layer for this variable."""
    noted = _spot_in(_WEIGHTS, layer) or {}
    return None if not noted else next((noted[key] for key in noted if _own(layer, *key) is variable), None)


def _own(layer: Any, learns: bool, number: int) -> Any:
    held = layer._trainable_variables if learns else layer._non_trainable_variables
    return held[number] if number < len(held) else None


def frozen_at(layers: Iterable[Any]) -> Location | None:
    """The line that has taken these layers out of the training, where it is one for all."""
    found = {location for layer in layers if (location := _noted_in(_FROZEN, layer)) is not None}
    return found.pop() if len(found) == 1 else None


def _noted_in(notes: Notes, thing: Any) -> Location | None:
    spot = _spot_in(notes, thing)
    return None if spot is None else spot.location


def _spot_in(notes: Any, thing: Any) -> Any:
    try:
        return notes.get(thing)
    except TypeError:  # a class of the user's that cannot be hashed
        return None


def pass_on(thing: Any, copied: Any) -> None:
    """A copy comes from the same line."""
    every: tuple[Any, ...] = (_MADE, _COMPILED, _FROZEN, _WEIGHTS)
    with suppress(TypeError):
        for places in every:
            if thing in places:
                places[copied] = places[thing]


def noted(failed: Failed) -> ExitStack:
    """While it is open, whoever makes a layer, a loss, an optimiser, a schedule or a callback, asks a layer for a weight, freezes
    it or compiles a model is remembered. `failed`: is given errors of ours; nothing else depends on the line that is lost."""
    kinds = (keras.layers.Layer, keras.losses.Loss, keras.optimizers.Optimizer, keras.callbacks.Callback, *_schedules())
    with ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(replaced(kind, "__init__", _making(failed)))
        # Keras loads a model without compiling it where its class has another compile() than the one that all inherit.
        defines = next(kind for kind in keras.Model.__mro__ if "compile" in vars(kind))
        stack.enter_context(replaced(defines, "compile", _compiling(failed)))
        stack.enter_context(replaced(keras.layers.Layer, "trainable", _freezing(failed)))
        stack.enter_context(replaced(keras.layers.Layer, "add_weight", _adding(failed)))
        return stack.pop_all()


def _schedules() -> list[type]:
    """Each has a constructor of its own and calls none above it."""
    above = keras.optimizers.schedules.LearningRateSchedule
    kinds = [kind for kind in vars(keras.optimizers.schedules).values() if isinstance(kind, type) and issubclass(kind, above)]
    return [kind for kind in kinds if "__init__" in vars(kind)]


def _making(failed: Failed) -> Make:
    def make(plain: Function) -> Function:
        def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
            attempt(failed, _note, _MADE, self, sys._getframe(1))
            return plain(self, *args, **kwargs)

        return construct

    return make


def _compiling(failed: Failed) -> Make:
    def make(plain: Function) -> Function:
        def compile_model(self: Any, *args: Any, **kwargs: Any) -> Any:
            attempt(failed, _note, _COMPILED, self, sys._getframe(1))
            return plain(self, *args, **kwargs)

        return compile_model

    return make


def _freezing(failed: Failed) -> Make:
    def make(plain: Function) -> Function:
        def freeze(self: Any, value: Any) -> None:
            # Keras passes the word on to all parts below: the same line is noted for each.
            attempt(failed, _note_frozen, self, value, sys._getframe(1))
            plain(self, value)

        return freeze

    return make


def _adding(failed: Failed) -> Make:
    def make(plain: Function) -> Function:
        def add_weight(self: Any, *args: Any, **kwargs: Any) -> Any:
            variable = plain(self, *args, **kwargs)
            attempt(failed, _note_weight, self, variable, sys._getframe(1))
            return variable

        return add_weight

    return make


def _has_notes(thing: Any) -> bool:
    """A class of the user's may forbid to hash it: nothing can be noted of it then."""
    return isinstance(thing, Hashable)


def _note_frozen(layer: Any, learns: Any, frame: FrameType) -> None:
    if _has_notes(layer):
        _FROZEN.pop(layer, None)
    if not learns:
        _note(_FROZEN, layer, frame)


def _note_weight(layer: Any, variable: Any, frame: FrameType | None) -> None:
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None or not _is_users(frame.f_code.co_filename) or not _has_notes(layer):
        return  # a layer of Keras' own asks for what it needs
    for learns, held in ((True, layer._trainable_variables), (False, layer._non_trainable_variables)):
        number = next((n for n, one in enumerate(held) if one is variable), None)
        if number is not None:
            _WEIGHTS.setdefault(layer, {}).setdefault((learns, number), Spot(frame.f_code, frame.f_lasti))


def _note(notes: Notes, thing: Any, frame: FrameType) -> None:
    if not _has_notes(thing):
        return
    # A class may call the constructors of several others: the first is the outermost.
    known = notes is _MADE and thing in notes
    spot = None if known else _users_spot(frame, thing)
    if spot is not None:
        notes[thing] = spot


def _users_spot(frame: FrameType | None, thing: Any = None) -> Spot | None:
    """Nobody has made a thing who only asked for a training, and the constructors of its own class are not where it is made."""
    while frame is not None and frame.f_code.co_filename != BENCH:
        code = frame.f_code
        if thing is not None and _enters(code):
            return None
        own = thing is not None and code.co_name == "__init__" and _owner(frame) is thing
        if _is_users(code.co_filename) and not own:
            return Spot(code, frame.f_lasti)
        frame = frame.f_back
    return None


def _enters(code: CodeType) -> bool:
    return code.co_name in ENTRIES and any(code is one for one in _ENTERED)


def _owner(frame: FrameType) -> Any:
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if names else None
