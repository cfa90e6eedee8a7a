"""Experiments on a copy of a training."""

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from abacus import SGD, Array, Module

from sleuth.core.contract.adapter import Bench, Gradients
from sleuth.core.observation import Failure, Observation
from sleuth.core.runtime.place import location_of
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Parts, Subject, Usage
from sleuth_abacus import looks


@contextmanager
def open_bench(subject: Subject) -> Iterator[Bench]:
    # Together: the optimiser of the copy holds the arrays of the copy.
    model, loss, optimiser = copy.deepcopy((subject.model, subject.loss, subject.optimizer))
    yield AbacusBench(model, loss, optimiser or SGD(model.parameters(), 0.01), subject.step)


class AbacusBench(Bench):
    wide = False  # everything that goes in is float64

    def __init__(self, model: Module, loss: Any, optimiser: Any, step: Any) -> None:
        self.model, self._loss, self.optimiser, self._step = model, loss, optimiser, step

    def paths(self) -> tuple[str, ...]:
        return tuple(self.model.parameters())

    def parameter(self, path: str) -> Array:
        return self.model.parameters()[path]

    def write(self, path: str, values: np.ndarray) -> None:
        self.parameter(path).data[...] = values

    def snapshot(self) -> Any:
        held = {path: array.data.copy() for path, array in self.model.parameters().items()}
        state = {k: copy.deepcopy(v) for k, v in vars(self.optimiser).items() if k != "parameters"}
        return held, state, random.getstate(), np.random.get_state()

    def restore(self, snapshot: Any) -> None:
        held, state, python, numpy = snapshot
        for path, values in held.items():
            self.write(path, values)
        vars(self.optimiser).update(copy.deepcopy(state))
        random.setstate(python)
        np.random.set_state(numpy)

    def set_training(self, on: bool) -> None:
        self.model.train(on)

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        heard, phase = looks.Heard(self.model), "forward"
        try:
            with heard:
                output = self.model(self._own(batch.inputs))
                phase = "loss"
                loss = self._loss(output, self._own(batch.target))
        except Exception as error:
            yield self.explain_failure(error, phase) if heard.inside is None else looks.failure(error, phase, heard.inside)
            return
        yield from looks.of_pass(heard, step, self._loss, output, batch.target, loss)

    def forward(self, inputs: Any) -> Any:
        return self.model(self._own(inputs))

    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        heard = looks.Heard(self.model)
        with heard:
            self._computed(batch)
        return tuple(output for path, output in heard.outputs if not path)

    def usage(self, batch: Parts) -> Usage | None:
        return None

    def loss(self, batch: Parts) -> float:
        return self._computed(batch).item()

    def gradients(self, batch: Parts) -> Gradients:
        self.optimiser.zero_grad()
        loss = self._computed(batch)
        loss.backward()
        return Gradients(loss.item(), {path: _held(array) for path, array in self.model.parameters().items()})

    def step(self, batch: Parts) -> float:
        loss = self.gradients(batch).loss
        self.optimiser.step()
        return loss

    def apply(self, batch: Parts) -> None:
        self.optimiser.step()

    @property
    def lr(self) -> float | None:
        return self.optimiser.lr

    def set_lr(self, lr: float) -> None:
        self.optimiser.lr = lr

    @property
    def weight_decay(self) -> float | None:
        return self.optimiser.weight_decay

    def scale_weight_decay(self, factor: float) -> None:
        self.optimiser.weight_decay *= factor

    def double(self) -> Bench:
        model, loss, optimiser = copy.deepcopy((self.model, self._loss, self.optimiser))
        for array in model.parameters().values():
            array.data = array.data.astype(np.float64)
        bench = AbacusBench(model, loss, optimiser, self._step)
        bench.wide = True
        return bench

    def explain_failure(self, error: Exception, phase: str) -> Observation:
        return Failure(phase, type(error).__name__, str(error), location=location_of(error.__traceback__))

    def _computed(self, batch: Parts) -> Array:
        if self._step is not None:
            return self._step(self.model, self._own(batch.raw))
        return self._loss(self.model(self._own(batch.inputs)), self._own(batch.target))

    def _own(self, tree: Any) -> Any:
        if not self.wide:
            return tree
        return map_arrays(tree, lambda a: Array(a.data.astype(np.float64)) if a.dtype.kind == "f" else a, _is_array)


def _is_array(thing: Any) -> bool:
    return isinstance(thing, Array)


def _held(array: Array) -> Array | None:
    return None if array.grad is None else Array(array.grad)
