"""A step of Keras' torch backend, listened to."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import torch
from keras.src.optimizers.base_optimizer import BaseOptimizer

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.hearing import Hearing
from sleuth.adapters.keras.patching import replaced
from sleuth.adapters.keras.watching.record import Look
from sleuth.core.errors import Stopped

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.watching import KerasWatching


class TorchStep:
    def __init__(self, watching: "KerasWatching") -> None:
        self._watching = watching
        self._inside = False
        self._losses: list[Any] = []
        self._gradients: dict[int, Any] | None = None  # by variable, at steps that are looked at

    @contextmanager
    def listening(self) -> Iterator[None]:
        with replaced(torch.Tensor, "backward", self._backward), replaced(BaseOptimizer, "apply", self._apply):
            yield

    def _backward(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def backward(loss: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside:
                self._losses.append(loss.detach())
            return plain(loss, *args, **kwargs)

        return backward

    def _apply(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def apply(optimiser: Any, grads: Any, trainable_variables: Any = None) -> Any:
            if self._gradients is not None and self._inside:
                given = optimiser._trainable_variables if trainable_variables is None else trainable_variables
                self._note(grads, given)
            return plain(optimiser, grads, trainable_variables)

        return apply

    def _note(self, grads: Any, variables: Any) -> None:
        try:
            found = self._gradients if self._gradients is not None else {}
            found.update({id(v): None if g is None else g.detach().clone() for g, v in zip(grads, variables, strict=True)})
        except Exception as error:
            self._watching.give_up(error)

    def function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        watching = self._watching
        compiled = bool(watching.model.jit_compile)
        if compiled:
            watching.remarks = ("the step is compiled as a whole by torch.compile: what goes on inside was not examined",)

        def train(data: Any) -> Any:
            looks = watching.trouble is None and watching.pace.looks_at(watching.steps) and not compiled
            began = time.perf_counter()
            self._losses = []
            hearing = Hearing(watching.model) if looks else None
            before = self._weights() if looks else []
            self._gradients = {} if looks else None
            own = time.perf_counter() - began
            self._inside = not compiled
            try:
                logs = self._listened(plain, data, hearing)
            except BaseException as error:
                watching.failed(error)
                raise
            finally:
                self._inside = False
            began = time.perf_counter()
            look = self._look(before, hearing, data) if looks else None
            watching.ended(self._losses, look, own + time.perf_counter() - began)
            return logs

        return train

    def _listened(self, plain: Callable[..., Any], data: Any, hearing: Hearing | None) -> Any:
        if hearing is None:
            return plain(data)
        with hearing.listening():
            return plain(data)

    def _look(self, before: list[np.ndarray], hearing: Hearing | None, data: Any) -> Look | None:
        watching, found = self._watching, self._gradients or {}
        self._gradients = None
        try:
            watching.read_rate()
            watching.is_weighted |= _is_weighted(data)
            variables = watching.model.trainable_variables
            order = watching.order()
            gradients = [found.get(id(variables[i])) for i in order] if found else None
            after = self._weights()
            picked = [[values[i] for i in order] for values in (before, after)] if len(before) == len(after) else [[], []]
            paths = watching.paths if picked[0] else ()
            return Look(paths, picked[0], picked[1], gradients if picked[0] else None, hearing, not watching.gathers)
        except Stopped:
            raise
        except Exception as error:
            watching.give_up(error)
            return None

    def _weights(self) -> list[np.ndarray]:
        return [np.array(backend.values(v)) for v in self._watching.model.trainable_variables]


def _is_weighted(data: Any) -> bool:
    batch = data[0] if isinstance(data, list | tuple) and len(data) else None
    return keras.utils.unpack_x_y_sample_weight(batch)[2] is not None if isinstance(batch, tuple) else False
