"""The joint copy of a hand-written model, its loss and its optimiser that probes work on."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import WORDS, takes, takes_nothing
from sleuth.adapters.common.manual_loop.loss_function import Call, one_number
from sleuth.adapters.numpy.activity import activity
from sleuth.adapters.numpy.array_lines import Births
from sleuth.adapters.numpy.backward_lines import Followed, backward_line
from sleuth.adapters.numpy.describing import describe, loss_name
from sleuth.adapters.numpy.failure import explain
from sleuth.adapters.numpy.gradients import WrongGradients, by_name, whole_numbers
from sleuth.adapters.numpy.loss_calls import failed_call, loss_calls
from sleuth.adapters.numpy.loss_forms import make_loss
from sleuth.adapters.numpy.losses import own_loss
from sleuth.adapters.numpy.model_parts import Parameters, layers
from sleuth.adapters.numpy.origin import find_origin
from sleuth.adapters.numpy.pass_listener import Listener, is_array
from sleuth.adapters.numpy.state import Snapshot, has_views, put_back, reach, remember
from sleuth.adapters.numpy.stepping import Stepper
from sleuth.core.contract.adapter import Bench, Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.location import Location
from sleuth.core.observation import Failure, Observation
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts, Subject, Usage, call_model


@contextmanager
def open_bench(subject: Subject) -> Iterator[Bench]:
    parts, note = copied(subject)
    before = remember(*parts)
    try:
        bench = NumpyBench(*parts, subject)
        bench.note = note or bench.note
        yield bench
    finally:
        put_back(before)


def copied(subject: Subject) -> tuple[tuple[Any, Any, Any], str | None]:
    given = (subject.model, subject.loss, subject.optimizer)
    if has_views(list(Parameters(subject.model).arrays().values()), *given):
        return (
            given,
            "the parameters are views of other arrays, which a copy tears apart; the original was used and put back",
        )
    try:
        return copy.deepcopy(given), None
    except Exception as error:  # a model may hold what cannot be copied: locks, open files, generators
        return given, f"the model cannot be copied ({type(error).__name__}: {error}); the original was used and put back"


class NumpyBench(Bench):
    wide = False  # True: everything that goes in is float64

    def __init__(self, model: Any, loss: Any, optimiser: Any, subject: Subject) -> None:
        self.model = model
        self._given = loss
        self._optimiser = optimiser
        self._subject = subject
        self._parameters = Parameters(model)
        frozen = {p.path for p in describe(Subject(model, None)).parameters if not p.trainable}
        self._paths = tuple(name for name in self._unique() if name not in frozen)
        self._stepper = Stepper(model, optimiser, self._parameters)
        self._training = True
        self._was_training = getattr(model, "training", True)
        self._modes = [
            (m, m.training) for _, m in [*layers(model), ("", model)] if isinstance(getattr(m, "training", None), bool)
        ]
        self._loss = make_loss(model, self._call, loss, subject.step)
        self._change: Callable[[Any], Any] = _as_it_is
        self._raw: Any = None
        self._last: Gradients | None = None
        self._asked: Parts | None = None  # the last batch whose gradients were asked for
        if loss is not None and own_loss(model) and takes_nothing(getattr(model, "backward", takes)):
            self.note = "backward() takes no gradient, so the model's own loss was used instead of loss="

    def _unique(self) -> Iterator[str]:
        seen: set[int] = set()
        for name, array in self._parameters.arrays().items():
            if id(array) not in seen:
                yield name
            seen.add(id(array))

    @property
    def optimiser(self) -> Any:
        return self._optimiser

    @property
    def takes_whole_steps(self) -> bool:
        """Only a train_step of the model's own knows how the weights change."""
        return self._stepper.whole is not None

    def paths(self) -> tuple[str, ...]:
        return self._paths

    def parameter(self, path: str) -> np.ndarray:
        return self._parameters.arrays()[path]

    def write(self, path: str, values: np.ndarray) -> None:
        if not self._parameters.live():
            raise Unsupported("parameters() gives copies: give the arrays that the model computes with")
        self.parameter(path)[...] = values

    def snapshot(self) -> Snapshot:
        return remember(self.model, self._given, self._optimiser, self._stepper)

    def restore(self, snapshot: Snapshot) -> None:
        put_back(snapshot)

    def set_training(self, on: bool) -> None:
        self._training = on
        as_given = on and self._was_training
        for thing, mode in self._modes:
            thing.training = mode if as_given else on

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        listener = Listener(self.model)
        batch = self._native(batch)
        made, failure, phase = Call(None), None, "forward"
        try:
            with np.errstate(all="ignore"), listener.listening():
                made = self._evaluate(batch)
        except Exception as error:
            phase = "loss" if listener.outputs else "forward"
            failure = self.explain_failure(error, phase)
        yield from activity(listener, step)
        name = loss_name(self._subject) or "loss"
        if self._loss is not None and failure is None:
            yield from loss_calls(name, self._loss, made, batch, listener)
            yield from self._not_one_number(made)
        if failure is None:
            yield from self._origin(listener, made, batch, step)
        else:
            if phase == "loss":
                yield failed_call(name, listener, batch)
            yield failure

    def _evaluate(self, batch: Parts) -> Call:
        return Call(None, self._call(batch.inputs)) if self._loss is None else self._loss.evaluate(batch)

    def _origin(self, listener: Listener, made: Call, batch: Parts, step: int) -> Iterator[Observation]:
        given = [a for _, a in leaves((batch.inputs, batch.target), is_array)] + list(self._parameters.arrays().values())
        found = find_origin(listener, given, made.value, lambda: self._evaluate(batch), step)
        if found is not None:
            yield found

    def _not_one_number(self, made: Call) -> Iterator[Observation]:
        try:
            one_number(made.value)
        except ValueError as error:
            yield self.explain_failure(error, "loss")

    def _call(self, inputs: Any) -> Any:
        forward = self.model.forward
        mode = [word for word in WORDS["training"] if takes(forward, "training") and word in forward.__code__.co_varnames]
        if mode and not isinstance(inputs, Mapping | tuple):
            return self._change(forward(inputs, **{mode[0]: self._training}))
        return self._change(call_model(forward, forward, inputs))

    @contextmanager
    def answers_changed(self, change: Callable[[Any], Any]) -> Iterator[None]:
        """What the model returns goes through `change`, unless a step of the user's own calls it."""
        self._change = change
        try:
            yield
        finally:
            self._change = _as_it_is

    def _native(self, batch: Parts) -> Parts:
        return Parts(*(self._convert(part) for part in (batch.inputs, batch.target, batch.raw)))

    def _convert(self, tree: Any) -> Any:
        if not self.wide:
            return tree
        return map_arrays(tree, lambda a: a.astype(np.float64) if a.dtype.kind == "f" else a, is_array)

    @np.errstate(all="ignore")
    def forward(self, inputs: Any) -> Any:
        return self._call(self._convert(inputs))

    @np.errstate(all="ignore")
    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        if self._subject.step is None:
            return (self.forward(batch.inputs),)
        listener = Listener(self.model)
        with listener.listening():
            self._evaluate(self._native(batch))
        # forward and the __call__ around it return the same object.
        return tuple({id(output): output for output in listener.outputs}.values())

    def usage(self, batch: Parts) -> Usage | None:
        return None  # arrays cannot be followed through NumPy's functions

    @np.errstate(all="ignore")
    def loss(self, batch: Parts) -> float:
        if self._loss is None:
            raise Unsupported("no loss was given, and the model has no compute_loss(x, y)")
        return one_number(self._loss.evaluate(self._native(batch)).value)

    @np.errstate(all="ignore")
    def gradients(self, batch: Parts) -> Gradients:
        if self._loss is None:
            raise Unsupported("no loss was given, and the model has no compute_loss(x, y)")
        self._stepper.clear()
        self._asked = batch
        value, self._raw = self._loss.gradients(self._native(batch))
        found = by_name(self._raw, self._parameters, self.model)
        self._last = Gradients(value, {path: found.get(path) for path in self._paths})
        self._require_floating()
        return self._last

    def _require_floating(self) -> None:
        """Weights of whole numbers are ill only where the update keeps them so: many a one makes new arrays of floats."""
        whole = [p for p in self._paths if self.parameter(p).dtype.kind in "iu"]
        if not whole or self._last is None or self._last.by_path[whole[0]] is None:
            return
        before = self.snapshot()
        try:
            self._stepper.apply(self._raw, self._last.by_path)
            kept = [p for p in whole if self.parameter(p).dtype.kind in "iu"]
        except TypeError:  # NumPy refuses to write floats into whole numbers
            kept = whole
        finally:
            self.restore(before)
        if kept:
            raise whole_numbers(kept[0], self.parameter(kept[0]).dtype)

    @np.errstate(all="ignore")
    def step(self, batch: Parts) -> float:
        if self._stepper.whole is not None:
            return self._whole(batch)
        loss = self.gradients(batch).loss
        self.apply(batch)
        return loss

    def _whole(self, batch: Parts) -> float:
        returned = Call(self._stepper.run_whole(self._native(batch))).value
        return self.loss(batch) if returned is None else one_number(returned)

    @np.errstate(all="ignore")
    def apply(self, batch: Parts) -> None:
        if self._stepper.whole is not None:
            self._stepper.run_whole(self._native(batch))
        elif self._last is None:
            raise Unsupported("no gradients were computed before the step")
        else:
            self._stepper.apply(self._raw, self._last.by_path)

    @property
    def lr(self) -> float | None:
        return None if self._stepper.rate is None else self._stepper.rate.get()

    def set_lr(self, lr: float) -> None:
        self._stepper.set_rate(lr)

    @property
    def weight_decay(self) -> float | None:
        return None if self._stepper.decay is None else self._stepper.decay.get()

    def scale_weight_decay(self, factor: float) -> None:
        if self._stepper.decay is not None:
            self._stepper.decay.set(self._stepper.decay.get() * factor)

    def double(self) -> "NumpyBench":
        parts = (self.model, self._given, self._optimiser)
        memo: dict[int, Any] = {id(a): a.astype(np.float64) for a in reach(*parts) if is_array(a) and a.dtype.kind == "f"}
        try:
            copied = copy.deepcopy(parts, memo)
        except Exception as error:
            raise Unsupported(f"the model cannot be copied: {error}") from None
        bench = NumpyBench(*copied, self._subject)
        bench.wide = True
        return bench

    def backward_line(self, path: str, *, upstream: bool) -> Location | None:
        seen = self.followed().line(path, upstream=upstream)
        return seen or backward_line(self.model, path, self.parameter(path), upstream=upstream)

    def followed(self, wrong: Mapping[str, Any] | None = None) -> Followed:
        """The last backward once more, line by line. `wrong`: what it gave that is no gradient."""
        asked, found = self._asked, list[Gradients]()
        births, state = Births(), self.snapshot()
        parameters = self._parameters.arrays()
        if asked is not None:
            births.follow(lambda: found.append(self.gradients(asked)))
        self.restore(state)
        return Followed(births, wrong or (found[0].by_path if found else {}), parameters)

    def explain_failure(self, error: Exception, phase: str) -> Failure:
        told = explain(error, phase, self.model)
        if not isinstance(error, WrongGradients) or not error.name:
            return told
        seen = self.followed({error.name: error.value}).line(error.name, upstream=False)
        line = seen or backward_line(self.model, error.name, self.parameter(error.name), upstream=False)
        kind = {"kind": "shape", "expected": error.expected, "got": error.got, "advice": error.advice}
        return replace(told, layer=error.name, location=line or told.location, **kind)  # type: ignore[arg-type]


def _as_it_is(output: Any) -> Any:
    return output
