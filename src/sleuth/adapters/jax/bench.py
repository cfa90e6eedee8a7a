"""The copy that probes work on. Arrays are never changed in place, so the user's are safe behind every reference."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from sleuth.adapters.jax import observing
from sleuth.adapters.jax.connection import reached
from sleuth.adapters.jax.failure import explain
from sleuth.adapters.jax.forms import form_of
from sleuth.adapters.jax.layer_values import LayerListener
from sleuth.adapters.jax.naming import step_usage
from sleuth.adapters.jax.program import Program, Progress, one_number
from sleuth.adapters.jax.running import Programs, as_array, joined, parted, precision
from sleuth.adapters.jax.stepping import Stepper
from sleuth.adapters.jax.trace import Trace
from sleuth.core.contract.adapter import Bench, Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Failure, Observation
from sleuth.core.subject import Parts, Subject, Usage


@contextmanager
def open_bench(subject: Subject) -> Iterator[Bench]:
    yield JaxBench(subject)


class JaxBench(Bench):
    def __init__(self, subject: Subject, wide: bool = False) -> None:
        self.subject = subject
        self.wide = wide
        self.form = form_of(subject.model, subject.optimizer)
        self.program = Program(self.form, subject.loss, subject.step)
        self.programs = Programs(wide)
        self.flat_paths = self.form.flat_paths()
        self._paths = self.form.paths()
        with precision(wide):
            self.params = _widened(self.form.params, wide)
            self.rest = _widened(self.form.rest, wide)
            self.stepper = Stepper(subject.optimizer, self.params)
            if subject.optimizer is not None and not wide:
                self.stepper.state  # noqa: B018  whatever is wrong with the optimiser shows before all experiments
        self._has_modes = self.form.has_modes
        self.training = True
        self._gradients: Any = None
        self.listener: LayerListener | None = None  # hears what is said inside the model
        self._lent: tuple[Any, Any] | None = None  # the model and optimiser that somebody may be changing
        self._traces: dict[Any, Trace] = {}

    def paths(self) -> tuple[str, ...]:
        return self._paths

    def lend(self) -> tuple[Any, Any] | None:
        """The model and the optimiser as objects that can be changed in place, where the user has such."""
        self.take_back()
        self._lent = self.form.model_and_optimiser(self.params, self.rest, self.subject.optimizer, self.stepper.state)
        return self._lent

    def take_back(self) -> None:
        if self._lent is None:
            return
        lent, self._lent = self._lent, None
        self.params, self.rest, self.stepper.state = self.form.taken_back(*lent, self.rest, self.stepper.state)

    def parameter(self, path: str) -> Any:
        self.take_back()
        return jax.tree.leaves(self.params)[self.flat_paths.index(path)]

    def write(self, path: str, values: np.ndarray) -> None:
        flat, tree = jax.tree.flatten(self.params)
        at = self.flat_paths.index(path)
        with precision(self.wide):
            flat[at] = jax.device_put(np.asarray(values).astype(flat[at].dtype).reshape(flat[at].shape))
        self.params = jax.tree.unflatten(tree, flat)

    def snapshot(self) -> Any:
        self.take_back()
        held = (self.params, self.rest, self.stepper.held, self.stepper.knobs)
        return held, random.getstate(), np.random.get_state()

    def restore(self, snapshot: Any) -> None:
        (self.params, self.rest, self.stepper.held, self.stepper.knobs), python, numpy = snapshot
        random.setstate(python)
        np.random.set_state(numpy)

    def set_training(self, on: bool) -> None:
        # A model without modes is one program, whatever it is asked for.
        self.training = on or not self._has_modes

    def trace(self, batch: Parts, progress: Progress | None = None) -> Trace:
        """One forward and loss, operation by operation; kept, for each shape of the batch and each mode."""
        return self._traced(self.program.given(batch), progress)

    def _traced(self, given: Any, progress: Progress | None = None, *, alone: bool = False) -> Trace:
        arrays, static = self.parted(given)
        key = (alone, self.training, static.key, tuple((a.shape, str(a.dtype)) for a in arrays))
        if key not in self._traces:
            self._traces[key] = made = Trace(self, arrays, static, progress or Progress(), alone=alone)
            self.repeats_dice = self.repeats_dice or made.repeats_dice
        return self._traces[key]

    def arrays(self, batch: Parts) -> list[Any]:
        return self.parted(self.program.given(batch))[0]

    def parted(self, tree: Any) -> Any:
        with precision(self.wide):
            return parted(tree, self.wide)

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        yield from observing.observe(self, batch, step)

    def forward(self, inputs: Any) -> Any:
        self.take_back()
        if self.listener is not None:
            self.listener.listen(self, self._traced((inputs, None), alone=True), self.parted((inputs, None))[0], backward=False)
        arrays, static = self.parted(inputs)
        training = self.training

        def run(params: Any, rest: Any, arrays: Any) -> Any:
            return self.program.forward(params, rest, joined(arrays, static), training)

        output, self.rest = self.programs.run(("forward", training, static.key), run, self.params, self.rest, arrays)
        return output

    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        if self.program.step is None:
            return (self.forward(batch.inputs),)
        return self.trace(batch).outputs_of_model(self, self.arrays(batch))

    def usage(self, batch: Parts) -> Usage | None:
        return step_usage(self, batch) if self.program.step is not None else None

    def loss(self, batch: Parts) -> float:
        value, self.rest = self._run("loss", self.value_of, batch)
        return float(value)

    def value_of(self, params: Any, rest: Any, given: Any, training: bool) -> Any:
        value, _, rest = self.program.evaluate(params, rest, given, training)
        return value, rest

    def _run(self, name: str, function: Callable[..., Any], batch: Parts) -> Any:
        self.take_back()
        if self.listener is not None:
            self.listener.listen(self, self.trace(batch), self.arrays(batch), backward=name == "gradients")
        return self.programs.run(*self.asked(name, function, batch))

    def asked(self, name: str, function: Callable[..., Any], batch: Parts) -> tuple[Any, ...]:
        """What `Programs` needs to compute a function of (weights, the rest, a batch, the mode)."""
        arrays, static = self.parted(self.program.given(batch))
        training = self.training

        def run(params: Any, rest: Any, arrays: Any, *more: Any) -> Any:
            return function(params, rest, joined(arrays, static), training, *more)

        return (name, training, static.key), run, self.params, self.rest, arrays

    def loss_with(self, batch: Parts, change: Callable[[Any], Any]) -> float:
        """The model's answer is computed, changed outside of any trace, and then given to the loss."""
        if not self.program.sees_output:
            raise Unsupported("step= keeps the model's answers to itself: give loss=")
        output = change(self.forward(batch.inputs))
        return float(self.judged(output, batch.target))

    def judged(self, output: Any, target: Any) -> Any:
        """What the user's loss says to this output."""
        arrays, static = self.parted((output, target))

        def run(arrays: Any) -> Any:
            return one_number(self.program.loss(*joined(arrays, static)))  # type: ignore[misc]

        return self.programs.run(("judged", static.key), run, arrays)

    def gradients(self, batch: Parts) -> Gradients:
        if self.program.step is None and self.program.loss is None:
            self.loss(batch)
        (value, self.rest), self._gradients = self._run("gradients", jax.value_and_grad(self.value_of, has_aux=True), batch)
        alive = reached(self.trace(batch))
        found = dict(zip(self.flat_paths, jax.tree.leaves(self._gradients), strict=True))
        return Gradients(float(value), {path: found[path] if path in alive else None for path in self._paths})

    def step(self, batch: Parts) -> float:
        (value, self.rest), self._gradients = self._run("gradients", jax.value_and_grad(self.value_of, has_aux=True), batch)
        self.apply(batch)
        return float(value)

    def apply(self, batch: Parts) -> None:
        if self._gradients is None:
            raise Unsupported("no gradients were computed before the step")
        self.params, self.stepper.state = self.programs.run(*self.asked_to_apply(self._gradients))

    def asked_to_apply(self, gradients: Any) -> tuple[Any, ...]:
        stepper = self.stepper
        with precision(self.wide):
            inputs = stepper.inputs()
        return ("apply", stepper.plan), stepper.function(), self.params, gradients, stepper.state, inputs

    @property
    def lr(self) -> float | None:
        return self.stepper.lr

    def set_lr(self, lr: float) -> None:
        self.stepper.set_lr(lr)

    @property
    def weight_decay(self) -> float | None:
        return self.stepper.weight_decay

    def scale_weight_decay(self, factor: float) -> None:
        self.stepper.scale_weight_decay(factor)

    def double(self) -> "JaxBench":
        other = JaxBench(self.subject, wide=True)
        with precision(True):
            other.params, other.rest = _widened(self.params, True), _widened(self.rest, True)
        other.training = self.training
        return other

    def explain_failure(self, error: Exception, phase: str) -> Failure:
        return explain(error, phase)


def _widened(tree: Any, wide: bool) -> Any:
    """As arrays of JAX: a NumPy array among the weights has no methods that user code may rely on."""
    return jax.tree.map(lambda leaf: as_array(leaf, wide), tree)
