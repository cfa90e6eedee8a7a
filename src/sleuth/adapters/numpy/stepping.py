"""Changing the weights as the user would: an optimiser object, update(), train_step(), or plain gradient descent."""

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import call, takes, takes_nothing
from sleuth.adapters.common.manual_loop.learning_rate import STAND_IN_RATE, Rate, find_decay, find_rate, is_number
from sleuth.adapters.numpy.held_gradients import live_gradients
from sleuth.adapters.numpy.model_parts import Parameters, layers
from sleuth.adapters.numpy.resets import resets_in_line
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts

CLEARING = (
    "zero_grad", "zero_grads", "zero_gradients", "clear_grad", "clear_grads", "clear_gradients", "reset_grad", "reset_grads",
    "reset_gradients",
)  # fmt: skip


class Stepper:
    """Applies gradients. `rate` is None where neither the user nor the model names one."""

    def __init__(self, model: Any, optimiser: Any, parameters: Parameters) -> None:
        self._model = model
        self._optimiser = optimiser
        self._parameters = parameters
        self._act = None if optimiser is None or is_number(optimiser) else step_method(optimiser)
        self._update = getattr(model, "update", None)
        self.rate = find_rate(model, optimiser)
        self.decay = find_decay(optimiser)
        self._own = Rate(SimpleNamespace(lr=STAND_IN_RATE), "lr")
        self._in_line: bool | None = None  # the user's loop sets gradients to zero itself

    @property
    def whole(self) -> Callable[..., Any] | None:
        """train_step, where that alone knows how the weights change."""
        return getattr(self._model, "train_step", None) if self._act is None and self._update is None else None

    def run_whole(self, batch: Parts) -> Any:
        whole = self.whole
        assert whole is not None
        offers = {
            "batch": lambda: batch.raw,
            "inputs": lambda: batch.inputs,
            "target": lambda: batch.target,
            **self._offers(None),
        }
        single = not takes(whole, "inputs") and not takes(whole, "target")
        return call(whole, offers, ("batch",) if single else ("inputs", "target"))

    def apply(self, raw: Any, gradients: Mapping[str, np.ndarray | None]) -> None:
        """`raw` is what backward() returned, in the form that the user's own code expects."""
        if self._act is not None:
            call(self._act, self._offers(raw), ("gradients",))
        elif callable(self._update):
            call(self._update, self._offers(raw), ("gradients", "rate"))
        elif not self._parameters.live():
            raise Unsupported("parameters() gives copies and the model has no update(grads, lr): the weights cannot be changed")
        else:
            self._descend(gradients)

    def _offers(self, raw: Any) -> dict[str, Callable[[], Any]]:
        rate = self.rate or self._own
        given = self._model.parameters
        return {
            "gradients": lambda: raw,
            "gradient": lambda: raw,
            "parameters": lambda: given() if callable(given) else given,
            "rate": rate.get,
            "model": lambda: self._model,
        }

    def _descend(self, gradients: Mapping[str, np.ndarray | None]) -> None:
        rate = (self.rate or self._own).get()
        for name, array in self._parameters.arrays().items():
            gradient = gradients.get(name)
            if gradient is not None and array.flags.writeable:
                array -= (rate * np.asarray(gradient)).astype(array.dtype)

    def clear(self) -> None:
        """As the user's loop does before a backward: where there is something to call, or a line of it that sets them to zero."""
        called = False
        for holder in (
            self._optimiser,
            self._model,
            getattr(self._model, "root", None),
            *(layer for _, layer in layers(self._model)),
        ):
            method = next((m for name in CLEARING if callable(m := getattr(holder, name, None))), None)
            if method is not None and takes_nothing(method):
                method()
                called = True
        if self._in_line is None:
            self._in_line = not called and resets_in_line(self._model)
        if self._in_line:
            for gradient in live_gradients(self._model, None):
                gradient[...] = 0

    def set_rate(self, value: float) -> None:
        if self.rate is not None:
            self.rate.set(value)
        elif self.whole is not None:
            raise Unsupported("train_step() keeps its learning rate to itself: give the model an attribute lr")
        else:
            self._own.set(value)


def step_method(optimiser: Any) -> Callable[..., Any] | None:
    return next((m for name in ("step", "update") if callable(m := getattr(optimiser, name, None))), None)


def optimiser_name(model: Any, optimiser: Any) -> str | None:
    if optimiser is not None and not is_number(optimiser):
        return type(optimiser).__name__
    own = next((f"{type(model).__name__}.{n}" for n in ("update", "train_step") if callable(getattr(model, n, None))), None)
    step = getattr(model, "written", None)
    if own is None and callable(step) and takes(step, "rate"):
        own = getattr(step, "__name__", "step")
    return own or ("SGD" if is_number(optimiser) else None)


def held_arrays(optimiser: Any) -> list[np.ndarray] | None:
    """The weights that an optimiser object holds; None when it holds none under a usual name."""
    for name in ("params", "parameters", "weights"):
        given = getattr(optimiser, name, None)
        if isinstance(given, dict | list | tuple):
            return list(_arrays_in(given))
    return None


def _arrays_in(tree: Any) -> Iterator[np.ndarray]:
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _arrays_in(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _arrays_in(value)
    else:
        yield from (v for n in ("data", "value") if isinstance(v := getattr(tree, n, None), np.ndarray))
