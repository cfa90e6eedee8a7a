"""Patches of Keras' own training: its train and test functions are made, a batch is read, a rate is set, an epoch ends."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import keras
from keras.src.optimizers.base_optimizer import BaseOptimizer

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.patches import Function, replaced
from sleuth.adapters.keras.watching.data_feeding import reading_class
from sleuth.adapters.listening.patches import tell
from sleuth.core.observation import Evaluation, Split

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.listener import KerasListener


def fit_patches(listener: "KerasListener") -> ExitStack:
    with ExitStack() as stack:
        for owner, name, make in (
            (keras.Model, "make_train_function", _train_function),
            (keras.Model, "make_test_function", _test_function),
            (keras.callbacks.CallbackList, "on_epoch_end", _epoch_end),
            (reading_class(), "__next__", _next),
            (BaseOptimizer, "learning_rate", _learning_rate),
        ):
            stack.enter_context(replaced(owner, name, make((listener,))))
        return stack.pop_all()


Told = tuple["KerasListener"]
Make = Callable[[Function], Function]


def _train_function(told: Told) -> Make:
    def make(plain: Function) -> Function:
        def make_train_function(model: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(model, *args, **kwargs)
            if model is told[0].model:
                tell(told, "train_function_made")
            return made

        return make_train_function

    return make


def _test_function(told: Told) -> Make:
    def make(plain: Function) -> Function:
        def make_test_function(model: Any, *args: Any, **kwargs: Any) -> Any:
            if model is told[0].model:
                tell(told, "evaluation_begins")
            return plain(model, *args, **kwargs)

        return make_test_function

    return make


def _epoch_end(told: Told) -> Make:
    def make(plain: Function) -> Function:
        def on_epoch_end(callbacks: Any, epoch: int, logs: Any = None) -> Any:
            if getattr(callbacks, "_model", None) is told[0].model:
                tell(told, "epoch_ended", logs)
            return plain(callbacks, epoch, logs)

        return on_epoch_end

    return make


def _next(told: Told) -> Make:
    clock = time.perf_counter

    def make(plain: Function) -> Function:
        def next_batch(iterator: Any) -> Any:
            began = clock()
            found = plain(iterator)
            tell(told, "batch_read", iterator, found, clock() - began)
            return found

        return next_batch

    return make


def _learning_rate(told: Told) -> Make:
    def make(plain: Function) -> Function:
        def set_rate(optimiser: Any, rate: Any) -> None:
            plain(optimiser, rate)
            tell(told, "rate_set", optimiser, sys._getframe(1))

        return set_rate

    return make


def evaluations(logs: Any, step: int, *, weighted: bool) -> Iterator[Evaluation]:
    """What Keras says at the end of an epoch. `weighted`: the training's loss counts samples differently, so that the one of the
    validation is not to be compared."""
    named = {str(k): value for k, v in (logs or {}).items() if (value := _number(v)) is not None}
    for split, prefix in ((Split.VALIDATION, "val_"), (Split.TRAIN, "")):
        mine = {k.removeprefix("val_"): v for k, v in named.items() if k.startswith("val_") == bool(prefix)}
        # What Keras calls the loss of an epoch is the mean over all its steps: the steps themselves are known.
        if split is Split.TRAIN or weighted:
            mine.pop("loss", None)
        mine.pop("learning_rate", None)
        if mine:
            yield Evaluation(step, split, mine, logged=True)


def _number(value: Any) -> float | None:
    try:
        return float(backend.values(value)) if backend.is_array(value) else float(value)
    except (TypeError, ValueError):
        return None
