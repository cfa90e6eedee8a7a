"""One joint copy of model, loss and optimiser that shares nothing with the user's objects. A model whose variables come with its
first batch is built."""

import copy
import sys
from dataclasses import replace
from types import CellType, FunctionType, MethodType
from typing import Any

import keras
from keras.src.saving.keras_saveable import KerasSaveable
from keras.src.utils.tracking import Tracker

from sleuth.adapters.keras import backend, data_sources
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.user_lines import pass_on
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Subject, take_apart

# Made for the original, and bound to it: Keras makes them anew.
OF_FIT = ("train_function", "test_function", "predict_function", "_eval_epoch_iterator", "history")
# Keras wraps these methods in functions that hold the layer they were made for.
WRAPPED = ("build", "quantize")


def copied(model: Any, loss: Any, optimiser: Any) -> tuple[Any, Any, Any]:
    """As they are, attributes and states included. Keras' own way of copying goes through a file and needs a get_config()."""
    memo: dict[int, Any] = {id(m): m for m in list(sys.modules.values())}
    for name in OF_FIT:
        made = getattr(model, "__dict__", {}).get(name)
        if made is not None:
            memo[id(made)] = None
    plain = KerasSaveable.__reduce__
    del KerasSaveable.__reduce__
    try:
        # Lists of layers report what is put into them, and refuse it once the model is built; here they are only refilled.
        with replaced(Tracker, "track", lambda track: lambda self, thing: thing):
            ours = copy.deepcopy((model, loss, optimiser), memo)
    finally:
        KerasSaveable.__reduce__ = plain
    for thing in [t for t in memo.values() if isinstance(t, keras.layers.Layer)]:
        _rebind(thing, memo)
    for thing in [t for t in memo.values() if isinstance(t, keras.optimizers.Optimizer)]:
        _know_again(thing)
    for one in (model, *(layer for _, layer in layers(model)), loss, optimiser):
        if id(one) in memo and memo[id(one)] is not one:
            pass_on(one, memo[id(one)])
    return ours


def _rebind(layer: Any, memo: dict[int, Any]) -> None:
    for name in WRAPPED:
        function = layer.__dict__.get(name)
        if isinstance(function, FunctionType) and function.__closure__:
            cells = tuple(CellType(_ours(cell.cell_contents, memo)) for cell in function.__closure__)
            made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
            made.__kwdefaults__ = function.__kwdefaults__
            made.__dict__.update({key: _ours(value, memo) for key, value in function.__dict__.items()})
            object.__setattr__(layer, name, made)


def _ours(thing: Any, memo: dict[int, Any]) -> Any:
    if isinstance(thing, MethodType) and id(thing.__self__) in memo:
        return MethodType(thing.__func__, memo[id(thing.__self__)])
    return memo.get(id(thing), thing)


def _know_again(optimiser: Any) -> None:
    """An optimiser knows its variables by their ids."""
    if optimiser.built:
        optimiser._trainable_variables_indices = {optimiser._var_key(v): i for i, v in enumerate(optimiser._trainable_variables)}


def is_built(model: Any) -> bool:
    return bool(model.built) or bool(model.weights)


def build(model: Any, subject: Subject) -> None:
    """Run a copy of the user's once on a batch of the data, as `fit` would, so that it has its variables."""
    if is_built(model):
        return
    batch = data_sources.first_batch(subject.train)
    if batch is None:
        raise UnusableInput(
            "the model has no variables yet: they come into being with its first batch. Call it once, model(x[:1]), or give "
            "it keras.Input(shape=…) as its first layer, before you hand it over."
        )
    inputs = take_apart(batch, subject.split).inputs
    try:
        model(map_arrays(inputs, _first_two, backend.is_array))
    except Exception:  # forward-fails tells it, with all that is known
        return


def as_built(subject: Subject) -> Subject:
    """With a copy of the model that has its variables, where the user's has none yet and there are data to build it with."""
    if is_built(subject.model) or subject.train is None:
        return subject
    model, _, optimiser = copied(subject.model, None, subject.optimizer)
    build(model, subject)
    return replace(subject, model=model, optimizer=optimiser)


def _first_two(array: Any) -> Any:
    return backend.native(array[:2])
