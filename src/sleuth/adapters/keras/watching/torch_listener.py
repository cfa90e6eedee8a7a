"""Hears a training on Keras' torch backend: from the model's call to the optimiser's, in `fit` or in a loop of one's own."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np
import torch

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.describing import rate_of
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.watching import torch_patches
from sleuth.adapters.keras.watching.listener import KerasListener
from sleuth.adapters.keras.watching.modes import ModeHearing
from sleuth.adapters.keras.watching.rerun_nonfinite import NonFiniteRerun
from sleuth.adapters.keras.watching.step_record import Look
from sleuth.adapters.listening.listener import contained
from sleuth.core.observation import Absent, NotFinite

COMPILED = "the step is compiled as a whole by torch.compile: what goes on inside was not examined"


class TorchListener(KerasListener):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._losses: list[Any] = []
        self._hearing: Hearing | None = None  # of the forward pass and loss of a step that is looked at
        self.passing: Hearing | None = None  # the same, until the pass is over
        self._pass_patches = ExitStack()
        self._call_patches, self._hears_calls = ExitStack(), False
        self._modes = ModeHearing(self.model, self._called, self.give_up)
        self._latest: Any = None  # the optimiser that stepped last, and is known to be this model's
        self._before: _Before | None = None  # while a step of this model's is written
        self._compiled = False
        self._used = UsedGradients()
        self._rerun = NonFiniteRerun(self.model, self._say, self.lose)

    @contextmanager
    def backend_patches(self) -> Iterator[None]:
        with torch_patches.step_patches(self):
            try:
                self._hear_calls(True)
                yield
            finally:
                self._end_pass()
                self._hear_calls(False)

    def follow_next(self) -> None:
        super().follow_next()
        self._hear_calls(True)

    def _hear_calls(self, on: bool) -> None:
        """Every call of a layer and of the model: only while a step is followed."""
        if on and not self._hears_calls:
            self._hears_calls = True
            self._call_patches.enter_context(replaced(keras.layers.Layer, "__call__", torch_patches.layer_call(self)))
            self._call_patches.enter_context(self._modes.listening())
        elif not on and self._hears_calls:
            self._hears_calls = False
            self._call_patches.close()

    def step_function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        self._compiled = bool(self.model.jit_compile)
        if self._compiled:
            self.remarks.append(COMPILED)
            self._say(Absent(NotFinite, COMPILED))
        return torch_patches.train_function(self, plain)

    @contained
    def step_begins(self, data: Any) -> None:
        self.begin_step(data[0])
        self._hear_calls(self.follows)
        if self.follows:
            self.is_weighted |= _is_weighted(data)
        self._rerun.data, self._begun_at = data[0], self.steps

    @contained
    def step_over(self) -> None:
        began, self._rerun.data = time.perf_counter(), None
        if self._compiled and self.steps == self._begun_at:
            self.end_step((), None, began)

    def failed(self, error: BaseException) -> None:
        self._rerun.data = None
        super().failed(error)

    @contained
    def model_begins(self) -> None:
        """Before the model is called."""
        if self._hearing is None and self.looks_now and torch.is_grad_enabled() and not self._compiled:
            self._hearing = Hearing(self.model, listens=self._hears_pass, failed=self.give_up)
            self.passing = self._pass_patches.enter_context(self._hearing.listening(to_layers=False))

    def _end_pass(self) -> None:
        self.passing = None
        self._pass_patches.close()

    def _hears_pass(self) -> bool:
        return self.gave_up is None and torch.is_grad_enabled()

    def _called(self, training: bool) -> None:
        if not torch.compiler.is_compiling() and self.gave_up is None:
            self._note_call(self._modes, training, torch.is_grad_enabled())

    @contained
    def backward(self, loss: Any) -> None:
        if not self.follows:
            self._losses.append(loss.detach())
        elif self.calls.heard_forward:
            self._losses.append(loss.detach())
            if not self.calls.heard_backward and not self._used.are_there:
                self.calls.nothing_left()
            self.calls.backward()
        if self._rerun.is_due(loss):
            self._end_pass()  # the pass that is heard is over, and another one begins
            self._rerun.run(self.steps)

    @contained
    def cleared(self) -> None:
        if self.follows:
            self.calls.cleared()

    @contained
    def before_apply(self, optimiser: Any, grads: list[Any], given: list[Any] | None) -> None:
        """`given`: its variables, where the caller names them."""
        self._before = None
        variables = list(optimiser._trainable_variables) if given is None else given
        is_known = not self.follows and optimiser is self._latest
        if not is_known and not self.holds(variables):
            return
        self._latest = optimiser
        if self.follows:
            self._end_pass()
            if self.calls.erased and any(gradient is not None and bool(gradient.any()) for gradient in grads):
                self.calls.given_all_the_same()
            self.optimisers.meet(optimiser)
        self.handed.note(variables)
        scale = self._scale(optimiser)
        self.before_step(self._losses, scale, grads, variables)
        looks = self._hearing is not None
        copies = (
            {id(v): None if g is None else g.detach().clone() for g, v in zip(grads, variables, strict=False)} if looks else {}
        )
        self._before = _Before(variables, scale, self._weights() if looks else [], copies)

    @contained
    def after_apply(self, optimiser: Any) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        began = time.perf_counter()
        look = self._look(before) if self._hearing is not None else None
        losses, self._losses, self._hearing = self._losses, [], None
        self._used.note(before.variables)
        self.end_step(losses, look, began, optimiser, before.variables, scale=before.scale)

    def _scale(self, optimiser: Any) -> float:
        """By which the optimiser has multiplied the loss."""
        if getattr(optimiser, "dynamic_scale", None) is None and not getattr(optimiser, "loss_scale_factor", None):
            return 1.0
        return float(backend.values(torch.as_tensor(optimiser.scale_loss(1.0)))) or 1.0

    def _look(self, before: "_Before") -> Look:
        self.read_rate(rate_of(self._latest))
        variables, order = self.model.trainable_variables, self.order()
        after = self._weights()
        # Nothing can be compared where variables came or went meanwhile.
        if not before.weights or len(before.weights) != len(after):
            return Look((), (), (), None, self._hearing, not self.gathers)
        found = [before.gradients.get(id(variables[i])) for i in order] if before.gradients else None
        if found is not None and before.scale != 1.0:
            found = [None if g is None else g / before.scale for g in found]
        weights = [[values[i] for i in order] for values in (before.weights, after)]
        return Look(self.paths, weights[0], weights[1], found, self._hearing, not self.gathers)

    def _weights(self) -> list[np.ndarray]:
        return [np.array(backend.values(v)) for v in self.model.trainable_variables]


class _Before(NamedTuple):
    """What is known of a step before it is written. Weights and gradients are copies, where it is looked at."""

    variables: list[Any]
    scale: float
    weights: list[np.ndarray]
    gradients: dict[int, Any]


class UsedGradients:
    """Gradients that a step has used: are they still there when the next backward comes? A loop may clear them in many ways."""

    def __init__(self) -> None:
        # Variable, where its gradient lies, how often that was written.
        self._used: list[tuple[Any, int, int]] = []

    def note(self, variables: Sequence[Any]) -> None:
        """A step was taken just now."""
        self._used = [(v, g.data_ptr(), g._version) for v in variables if (g := v.value.grad) is not None]

    @property
    def are_there(self) -> bool:
        return any(_is(variable.value.grad, place, version) for variable, place, version in self._used)


def _is(gradient: Any, place: int, version: int) -> bool:
    return gradient is not None and gradient.data_ptr() == place and gradient._version == version


def _is_weighted(data: Any) -> bool:
    batch = data[0] if isinstance(data, list | tuple) and len(data) else None
    return keras.utils.unpack_x_y_sample_weight(batch)[2] is not None if isinstance(batch, tuple) else False
