"""The joint copy of a Keras model, its loss and its optimiser that probes work on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from sleuth.adapters.keras import backend, failure
from sleuth.adapters.keras.activity import activity
from sleuth.adapters.keras.copying import build, copied
from sleuth.adapters.keras.describing import optimiser_of, rate_of
from sleuth.adapters.keras.float64 import widen
from sleuth.adapters.keras.losses import NotOneNumber, one_number, require_scalar
from sleuth.adapters.keras.model_parts import trainable, variables
from sleuth.adapters.keras.objective import Objective
from sleuth.adapters.keras.origins import Origins
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.rates import decay_of, ready, scale_decay, scaled
from sleuth.adapters.keras.sides import side_of, without_warnings
from sleuth.adapters.keras.state import Snapshot
from sleuth.core.contract.adapter import Bench, Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Failure, Observation
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Parts, Subject, Usage


@contextmanager
def open_bench(subject: Subject, *, copies_only: bool = False) -> Iterator[Bench]:
    """`copies_only`: in the middle of a training the original is not to be used, where the model cannot be copied."""
    backend.require_known()
    given = (subject.model, subject.loss, optimiser_of(subject))
    note = None
    try:
        parts = copied(*given)
    except Exception as error:  # a model may hold what cannot be copied: locks, open files, generators
        if copies_only:
            raise
        parts = given
        note = f"the model cannot be copied ({type(error).__name__}: {error}); the original was used and put back"
    build(parts[0], subject)
    bench = KerasBench(*parts, subject)
    bench.note = note or bench.note
    before = bench.snapshot()
    try:
        yield bench
    finally:
        bench.restore(before)


class KerasBench(Bench):
    def __init__(self, model: Any, loss: Any, optimiser: Any, subject: Subject) -> None:
        self.model = model
        self._objective = Objective(model, loss, subject)
        self._subject = subject
        self._held = {held.path: held.variable for held in trainable(model)}
        self._all = {held.path: held.variable for held in variables(model)}  # those that are frozen too
        self._own_optimiser = optimiser is None
        self.optimiser = ready(optimiser, model) if self._held else None
        self.side = side_of(model)
        self._training = True
        self._change: Callable[[Any], Any] = _as_it_is
        self._last: list[Any] | None = None
        if type(model).train_step is not keras.Model.train_step and subject.step is None and loss is None:
            self.note = "the model's own train_step is left out: experiments use the compiled loss and optimiser"

    @property
    def held(self) -> dict[str, Any]:
        """Trainable variables by path."""
        return self._held

    @property
    def has_users_optimiser(self) -> bool:
        return not self._own_optimiser

    @property
    def has_own_step(self) -> bool:
        return self._subject.step is not None

    @property
    def training(self) -> bool:
        return self._training

    def paths(self) -> tuple[str, ...]:
        return tuple(self._held)

    def parameter(self, path: str) -> Any:
        return self._all[path].value

    def write(self, path: str, values: np.ndarray) -> None:
        self._all[path].assign(backend.like(np.asarray(values), self._all[path]))

    def snapshot(self) -> Snapshot:
        return Snapshot(
            [*self.model.variables, *(self.optimiser.variables if self.optimiser is not None else ())], self.optimiser
        )

    def restore(self, snapshot: Snapshot) -> None:
        snapshot.put_back()
        self._last = None

    def set_training(self, on: bool) -> None:
        self._training = on
        if hasattr(self.model, "train"):  # modules of torch inside the model have a mode of their own
            self.model.train(on)

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        batch, hearing = self.native(batch), Hearing(self.model)
        origins = Origins(hearing)
        output, value, failed = None, None, None
        try:
            with without_warnings(), origins.listening():
                output, value = self.side.listened(hearing, self._evaluated, self._tree(batch), ("observe", self._training))
        except Exception as error:
            failed = self.explain_failure(error, hearing.phase, hearing.failed_in)
        yield from activity(hearing.made, step)
        yield from self._objective.calls(hearing, output, value, batch, self.side, training=self._training)
        if failed is None and (found := origins.found((hearing.outputs, value), step)) is not None:
            yield found
        if failed is None and value is not None:
            failed = self._not_one_number(value)
        if failed is not None:
            yield failed

    def _not_one_number(self, value: Any) -> Failure | None:
        try:
            require_scalar(value)
        except NotOneNumber as error:
            return self.explain_failure(error, "backward")
        return None

    def _evaluate(self, batch: Parts) -> tuple[Any, Any]:
        """The output and the loss; None for a loss that there is not."""
        if self._subject.step is not None:
            return None, self._subject.step(self.model, batch.raw)
        output, penalties = self._answer(batch.inputs)
        return output, self._loss_of(output, penalties, batch)

    def _evaluated(self, tree: Any) -> tuple[Any, Any]:
        if self._subject.step is not None:
            return self._evaluate(Parts(None, None, tree))
        inputs, target = tree
        return self._evaluate(Parts(inputs, target, None))

    def _answer(self, inputs: Any) -> tuple[Any, list[Any]]:
        """With what regularisers and layers add to the loss, which `fit` counts in."""
        return self.call(inputs), list(self.model.losses)

    def _loss_of(self, output: Any, penalties: list[Any], batch: Parts) -> Any:
        return self._objective.of(output, penalties, batch, training=self._training)

    def call(self, inputs: Any) -> Any:
        mode = {"training": self._training} if self.model._call_has_training_arg else {}
        return self.model(inputs, **mode)

    @contextmanager
    def answers_changed(self, change: Callable[[Any], Any]) -> Iterator[None]:
        """What the model returns goes through `change`, unless a step of the user's own calls it."""
        self._change = change
        try:
            yield
        finally:
            self._change = _as_it_is

    def native(self, batch: Parts) -> Parts:
        return Parts(*(map_arrays(part, self._converted, backend.is_array) for part in (batch.inputs, batch.target, batch.raw)))

    def _converted(self, array: Any) -> Any:
        return backend.native(array)

    def compute(self, batch: Parts) -> Any:
        """The loss, one number of the backend."""
        return one_number(self._evaluate(batch)[1])

    @without_warnings()
    def forward(self, inputs: Any) -> Any:
        given = map_arrays(inputs, self._converted, backend.is_array)
        return self.side.without_gradients(self._answer, given, ("answer", self._training))[0]

    @without_warnings()
    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        if self._subject.step is None:
            return (self.forward(batch.inputs),)
        hearing = Hearing(self.model)
        native = self.native(batch)
        before = self.snapshot()
        with hearing.listening():
            self._evaluate(native)
        before.put_back()
        return tuple(map_arrays(output, _detached, backend.is_array) for output in hearing.outputs)

    def usage(self, batch: Parts) -> Usage | None:
        return None  # what a step does between the batch and the model is not followed

    @without_warnings()
    def loss(self, batch: Parts) -> float:
        native, key = self.native(batch), self._training
        if self._subject.step is not None:
            return float(backend.values(self.side.without_gradients(self._of_parts, native.raw, ("step", key))))
        # The loss itself is not compiled together with the model: other answers may take the place of the model's.
        output, penalties = self.side.without_gradients(self._answer, native.inputs, ("answer", key))
        with self.side.unrecorded():
            value = self._loss_of(self._change(output), penalties, native)
        return float(backend.values(one_number(value)))

    def _tree(self, batch: Parts) -> Any:
        return batch.raw if self._subject.step is not None else (batch.inputs, batch.target)

    def _of_parts(self, tree: Any) -> Any:
        if self._subject.step is not None:
            return self.compute(Parts(None, None, tree))
        inputs, target = tree
        return self.compute(Parts(inputs, target, None))

    @without_warnings()
    def gradients(self, batch: Parts) -> Gradients:
        if not self._held:
            raise Unsupported("no variable is trainable")
        native = self.native(batch)
        value, found = self.side.gradients(self._of_parts, self._tree(native), ("loss", self._training))
        self._last = found
        by_id = {id(v): g for v, g in zip(self.model.trainable_variables, found, strict=True)}
        return Gradients(float(backend.values(value)), {path: by_id[id(v)] for path, v in self._held.items()})

    def step(self, batch: Parts) -> float:
        loss = self.gradients(batch).loss
        self.apply(batch)
        return loss

    @without_warnings()
    def apply(self, batch: Parts) -> None:
        if self._last is None or self.optimiser is None:
            raise Unsupported("no gradients were computed before the step")
        self.side.apply(self.optimiser, self._last)

    @property
    def lr(self) -> float | None:
        return None if self._own_optimiser else rate_of(self.optimiser)

    def set_lr(self, lr: float) -> None:
        if self.optimiser is None:
            raise Unsupported("no variable is trainable, so there is no rate to set")
        scaled(self.optimiser, lr)

    @property
    def weight_decay(self) -> float | None:
        return None if self._own_optimiser else decay_of(self.optimiser)

    def scale_weight_decay(self, factor: float) -> None:
        scale_decay(self.optimiser, factor)

    def double(self) -> "Bench":
        try:
            model, loss, _ = copied(self.model, self._objective.given, None)
        except Exception as error:
            raise Unsupported(f"the model cannot be copied: {error}") from None
        from sleuth.adapters.keras.float64_bench import DoubleBench

        widened = side_of(model)
        with widened.wide():
            widen(model, loss)
            return DoubleBench(model, loss, None, self._subject)

    def explain_failure(self, error: Exception, phase: str, layer: str | None = None) -> Failure:
        return failure.explain(error, phase, self.model, layer)


def held_by(bench: Bench) -> KerasBench:
    if not isinstance(bench, KerasBench):
        raise Unsupported("this bench does not hold a Keras model")
    return bench


def _detached(array: Any) -> Any:
    return array.detach() if hasattr(array, "detach") else array


def _as_it_is(output: Any) -> Any:
    return output
