"""A step of Keras' torch backend, listened to: from the model's call to the optimiser's, in `fit` or in a loop of one's own."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import torch
from keras.src.optimizers.base_optimizer import BaseOptimizer

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.describing import rate_of
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.watching.modes import ModeHearing
from sleuth.adapters.keras.watching.record import Look
from sleuth.adapters.keras.watching.rerun_nonfinite import Births
from sleuth.adapters.keras.watching.used_gradients import Leftovers, has_values
from sleuth.core.errors import Stopped, Violated

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.watching import KerasWatching


class TorchStep:
    def __init__(self, watching: "KerasWatching") -> None:
        self._watching = watching
        self._losses: list[Any] = []
        self._hearing: Hearing | None = None
        self._listened = ExitStack()  # while the forward pass and loss of a step are heard
        self._ears, self._is_listening = ExitStack(), False
        self._modes = ModeHearing(watching.model, self._called)
        self._depth = 0  # optimisers that scale the loss call another one
        self._latest: Any = None  # the optimiser that stepped last, and is known to be this model's
        self._own = 0.0
        self._compiled = False
        self._leftovers = Leftovers()
        self._births = Births(watching.model, watching._waiting)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(replaced(torch.Tensor, "backward", self._backward))
            stack.enter_context(replaced(torch.nn.Module, "zero_grad", self._zero_grad))
            stack.enter_context(replaced(BaseOptimizer, "apply", self._apply))
            try:
                self._listen(True)
                yield
            finally:
                self._listened.close()
                self._listen(False)

    def wake(self) -> None:
        self._listen(True)

    def _listen(self, on: bool) -> None:
        """To every call of a layer and of the model: only while a step is followed."""
        if on and not self._is_listening:
            self._is_listening = True
            self._ears.enter_context(replaced(keras.layers.Layer, "__call__", self._beginning))
            self._ears.enter_context(self._modes.listening())
        elif not on and self._is_listening:
            self._is_listening = False
            self._ears.close()

    def _beginning(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if layer is not self._watching.model or self._hearing is not None or not self._is_due():
                return plain(layer, *args, **kwargs)
            began = time.perf_counter()
            self._hearing = Hearing(layer, listens=torch.is_grad_enabled)
            self._listened.enter_context(self._hearing.listening())
            self._own += time.perf_counter() - began
            return keras.layers.Layer.__call__(layer, *args, **kwargs)

        return call

    def _is_due(self) -> bool:
        watching = self._watching
        looks = watching.trouble is None and watching.pace.looks_at(watching.steps)
        return looks and torch.is_grad_enabled() and not self._compiled

    def _called(self, training: bool) -> None:
        if not torch.compiler.is_compiling():
            self._watching.called(self._modes, training=training, graph=torch.is_grad_enabled())

    def _backward(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def backward(loss: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._watching.awake:
                self._losses.append(loss.detach())
            elif self._watching.calls.heard_forward:
                self._losses.append(loss.detach())
                if not self._watching.calls.heard_backward and not self._leftovers.are_there:
                    self._watching.calls.nothing_left()
                self._watching.calls.backward()
            if self._births.look(loss):
                self._listened.close()  # the pass that is heard is over, and another one begins
                self._births.tell(self._watching.steps)
            return plain(loss, *args, **kwargs)

        return backward

    def _zero_grad(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def zero_grad(module: Any, *args: Any, **kwargs: Any) -> Any:
            if module is self._watching.model and self._watching.awake:
                self._watching.calls.cleared()
            return plain(module, *args, **kwargs)

        return zero_grad

    def _apply(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def apply(optimiser: Any, grads: Any, trainable_variables: Any = None) -> Any:
            if (
                not self._watching.awake
                and not self._depth
                and optimiser is self._latest
                and isinstance(trainable_variables, list)
            ):
                return self._dozing(plain, optimiser, grads, trainable_variables)
            variables = list(optimiser._trainable_variables if trainable_variables is None else trainable_variables)
            if self._depth or not self._watching.holds(variables):
                return plain(optimiser, grads, trainable_variables)
            grads = list(grads)
            began = time.perf_counter()
            self._listened.close()
            if self._watching.calls.erased and has_values(grads):
                self._watching.calls.given_all_the_same()
            scale = self._scale(optimiser)
            self._watching.optimisers.meet(optimiser)
            self._watching.given.note(variables)
            self._watching.about_to_step(self._losses, scale, grads, variables)
            found = self._gradients(grads, variables) if self._hearing is not None else None
            before = self._weights() if self._hearing is not None else []
            self._own += time.perf_counter() - began
            result = self._applied(plain, optimiser, grads, trainable_variables)
            self._ended(optimiser, variables, before, found, scale)
            return result

        return apply

    def _applied(self, plain: Callable[..., Any], optimiser: Any, grads: Any, variables: Any) -> Any:
        self._depth, self._latest = 1, optimiser
        try:
            return plain(optimiser, grads, variables)
        finally:
            self._depth = 0

    def _dozing(self, plain: Callable[..., Any], optimiser: Any, grads: Any, variables: list[Any]) -> Any:
        """A step like the ones before: its loss is noted, and what it is given."""
        watching = self._watching
        scale = self._scale(optimiser)
        if watching.guard.every_gradient or watching.guard.asked:
            grads = list(grads)
            watching.about_to_step(self._losses, scale, grads, variables)
        watching.given.note(variables)
        result = self._applied(plain, optimiser, grads, variables)
        losses, self._losses = self._losses, []
        self._leftovers.note(variables)
        watching.ended(losses, None, 0.0, optimiser, variables, scale=scale)
        return result

    def _ended(self, optimiser: Any, variables: list[Any], before: list[np.ndarray], found: Any, scale: float) -> None:
        began = time.perf_counter()
        look = self._look(before, found, scale) if self._hearing is not None else None
        losses, self._losses, self._hearing = self._losses, [], None
        self._leftovers.note(variables)
        own, self._own = self._own, 0.0
        self._watching.ended(losses, look, own + time.perf_counter() - began, optimiser, variables, scale=scale)

    def _scale(self, optimiser: Any) -> float:
        """By which the optimiser has multiplied the loss."""
        if getattr(optimiser, "dynamic_scale", None) is None and not getattr(optimiser, "loss_scale_factor", None):
            return 1.0
        try:
            return float(backend.values(torch.as_tensor(optimiser.scale_loss(1.0)))) or 1.0
        except Exception as error:
            self._watching.give_up(error)
            return 1.0

    def _gradients(self, grads: list[Any], variables: list[Any]) -> dict[int, Any]:
        return {id(v): None if g is None else g.detach().clone() for g, v in zip(grads, variables, strict=False)}

    def function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Keras tells no callback of an exception."""
        watching = self._watching
        self._compiled = bool(watching.model.jit_compile)
        if self._compiled:
            watching.remarks = ("the step is compiled as a whole by torch.compile: what goes on inside was not examined",)

        def train(data: Any) -> Any:
            awake = watching.begins_step()
            self._listen(awake)
            if awake:
                watching.is_weighted |= _is_weighted(data)
            watching.fed(data[0])
            steps, self._births.data = watching.steps, data[0]
            try:
                logs = plain(data)
            except BaseException as error:
                watching.failed(error)
                raise
            finally:
                self._births.data = None
            if self._compiled and watching.steps == steps:
                watching.ended((), None, 0.0)
            return logs

        return train

    def _look(self, before: list[np.ndarray], found: Any, scale: float) -> Look | None:
        watching = self._watching
        try:
            watching.read_rate(rate_of(self._latest))
            variables = watching.model.trainable_variables
            order = watching.order()
            gradients = [found.get(id(variables[i])) for i in order] if found else None
            if gradients is not None and scale != 1.0:
                gradients = [None if g is None else g / scale for g in gradients]
            after = self._weights()
            picked = [[values[i] for i in order] for values in (before, after)] if len(before) == len(after) else [[], []]
            paths = watching.paths if picked[0] else ()
            return Look(paths, picked[0], picked[1], gradients if picked[0] else None, self._hearing, not watching.gathers)
        except (Stopped, Violated):
            raise
        except Exception as error:
            watching.give_up(error)
            return None

    def _weights(self) -> list[np.ndarray]:
        return [np.array(backend.values(v)) for v in self._watching.model.trainable_variables]


def _is_weighted(data: Any) -> bool:
    batch = data[0] if isinstance(data, list | tuple) and len(data) else None
    return keras.utils.unpack_x_y_sample_weight(batch)[2] is not None if isinstance(batch, tuple) else False
