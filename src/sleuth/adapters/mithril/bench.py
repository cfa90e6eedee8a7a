"""The copy of the parameters that probes work on. A compiled model is a function of them: it needs no copy itself."""

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.loss_function import one_number
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.describing import parameter_keys
from sleuth.adapters.mithril.failure import explain
from sleuth.adapters.mithril.given_model import Given
from sleuth.adapters.mithril.graph_walk import Walk
from sleuth.adapters.mithril.graph_walk import walk as walk_graph
from sleuth.adapters.mithril.key_roles import Wiring, feed, feed_inputs, wire
from sleuth.adapters.mithril.looking import Held, look
from sleuth.adapters.mithril.losses import Loss, OutputLoss, OwnLoss, plain_value, prepared
from sleuth.adapters.mithril.stepping import Stepper
from sleuth.core.contract.adapter import Bench, Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Failure, Observation
from sleuth.core.subject import Parts, Subject, Usage

NO_LOSS = "no loss was given, and no output of the model is one: give loss=…, or train a TrainModel with add_loss"
NO_GRADIENT = "the model was compiled with inference=True, which leaves gradients out: compile it again without"


@contextmanager
def open_bench(given: Given, subject: Subject) -> Iterator["MithrilBench"]:
    """Backends that differentiate by hand keep what the last evaluation made in the model: that is put back."""
    cached = given.physical.flat_graph.cached_data
    kept = {key: dict(value) for key, value in cached.items() if isinstance(value, dict)}
    try:
        yield MithrilBench(given, subject, copy.deepcopy(subject.optimizer))
    finally:
        for key, content in kept.items():
            cached[key].clear()
            cached[key].update(content)


class MithrilBench(Bench):
    def __init__(self, given: Given, subject: Subject, optimiser: Any, *, wide: bool = False) -> None:
        self.given, self.subject, self._wide = given, subject, wide
        self._paths = parameter_keys(given.graph)
        self.params = {key: arrays.like(np.array(arrays.values(a)), a) for key, a in given.params.items()}
        self._state = dict(given.state)
        backend = given.physical.backend
        self._plain = backend.backend_type == "numpy"
        self.wiring: Wiring = wire(given.graph, subject.loss)
        self._stepper = Stepper(optimiser, backend, self.params)
        self._change: Callable[[Any], Any] | None = None
        self._last: Gradients | None = None
        self._hear: Callable[[Walk], None] | None = None
        self._function = prepared(subject.loss, backend) if not isinstance(subject.loss, str) else None
        self.judge = self._made_loss()
        if given.drawn:
            self.note = (
                "no parameters were given: sleuth drew them with randomize_params(), which gives every weight a spread of 1"
            )

    def _made_loss(self) -> Loss | None:
        if self.subject.step is not None:
            return None
        if self.wiring.loss is not None:
            return OutputLoss(self.wiring, self._evaluate, self._exact_loss if self._wide else None)
        if self._function is None:
            return None
        graph = self.given.graph
        name = next((n for n, key in graph.outputs.items() if key in self.wiring.outputs), "output")
        return OwnLoss(self._function, name, self.answer, self._evaluate, self._plain)

    def _exact_loss(self, batch: Parts) -> Any:
        done = self.walk(feed(self.wiring, batch))
        if done.error is not None:
            raise done.error
        return done.values[self.given.graph.outputs[str(self.wiring.loss)]]

    def paths(self) -> tuple[str, ...]:
        return () if self.given.physical.inference else self._paths

    def parameter(self, path: str) -> Any:
        return self.params[path]

    def write(self, path: str, values: np.ndarray) -> None:
        self.params[path] = arrays.like(values, self.params[path])

    def snapshot(self) -> Any:
        kept = {key: np.array(arrays.values(a)) for key, a in self.params.items()}
        return kept, dict(self._state), self._stepper.keep(), random.getstate(), np.random.get_state()

    def restore(self, snapshot: Any) -> None:
        kept, state, stepper, python, numpy = snapshot
        self.params = {key: arrays.like(kept[key].copy(), self.params[key]) for key in kept}
        self._state = dict(state)
        self._stepper.put_back(stepper)
        random.setstate(python)
        np.random.set_state(numpy)

    def set_training(self, on: bool) -> None:
        """A compiled model has one mode: `inference` is another compilation, and concerns gradients only."""

    def _native(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self._array(value) for key, value in data.items()}

    def _array(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and not self._plain:
            return self.given.physical.backend.array(value)
        return value.astype(np.float64) if self._wide and arrays.is_array(value) and arrays.is_float(value) else value

    @np.errstate(all="ignore")
    def _evaluate(self, batch: Parts, output_gradients: Any = False) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Outputs and gradients by key. The state that it returns is kept for the next step."""
        if output_gradients is not False and self.given.physical.inference:
            raise Unsupported(NO_GRADIENT)
        options = {} if not self._state else {"state": self._state}
        data = self._native(feed(self.wiring, batch))
        returned = self.given.physical.evaluate(dict(self.params), data, output_gradients=output_gradients, **options)
        if self._hear is not None and (self.wiring.loss is not None or output_gradients is False):
            self._hear(walk_graph(self.given.graph, {**self.params, **self._state, **data}, self.wiring.outputs))
        parts = returned if isinstance(returned, tuple) else (returned,)
        if self._state and output_gradients is not False:
            self._next = dict(parts[-1])
        return parts[0], parts[1] if output_gradients is not False else {}

    def answer(self, inputs: Any) -> Any:
        """What the model says to these inputs, whether or not it goes on to a loss."""
        done = self.walked(inputs)
        graph, keys = self.given.graph, self.wiring.outputs
        names = {key: name for name, key in graph.outputs.items()}
        output = done.values[keys[0]] if len(keys) == 1 else {names.get(key, key): done.values[key] for key in keys}
        return output if self._change is None else self._change(output)

    def walked(self, inputs: Any) -> Walk:
        """Every value on the way from these inputs to the answer. Raises what a function raises."""
        done = self.walk(feed_inputs(self.wiring, inputs), self.wiring.outputs)
        if done.error is not None:
            raise done.error
        if self._hear is not None:
            self._hear(done)
        return done

    @contextmanager
    def heard_by(self, hear: Callable[[Walk], None]) -> Iterator[None]:
        """It is told each pass from inputs to the answer, value by value."""
        self._hear = hear
        try:
            yield
        finally:
            self._hear = None

    @np.errstate(all="ignore")
    def walk(self, data: Mapping[str, Any], until: tuple[str, ...] | None = None) -> Walk:
        return walk_graph(self.given.graph, {**self.params, **self._state, **self._native(data)}, until)

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        return look(self, batch, step)

    def asked(self, output: Any, target: Any) -> Any:
        """What a loss that stands outside the model says to any output."""
        ask = None if self.judge is None else self.judge.ask
        if ask is None:
            raise Unsupported(NO_LOSS)
        return plain_value(ask(output, target))

    @np.errstate(all="ignore")
    def forward(self, inputs: Any) -> Any:
        return self.answer(inputs)

    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        if self.subject.step is None:
            return (self.forward(batch.inputs),)
        held = Held(self)
        self.subject.step(held, batch.raw)
        return tuple(held.outputs)

    def usage(self, batch: Parts) -> Usage | None:
        return None  # what a step of the user's own does with plain arrays cannot be followed

    @np.errstate(all="ignore")
    def loss(self, batch: Parts) -> float:
        if self.subject.step is not None:
            return one_number(arrays.values(plain_value(self.subject.step(Held(self), batch.raw))))
        if self.judge is None:
            raise Unsupported(NO_LOSS)
        return one_number(arrays.values(self.judge.value(batch)))

    @np.errstate(all="ignore")
    def gradients(self, batch: Parts) -> Gradients:
        if self.subject.step is not None:
            raise Unsupported("step() gives only a number, which cannot be differentiated: give loss= instead")
        if self.judge is None:
            raise Unsupported(NO_LOSS)
        value, found = self.judge.gradients(batch)
        reached = self._reached()
        self._last = Gradients(value, {key: found.get(key) if key in reached else None for key in self.paths()})
        return self._last

    def _reached(self) -> frozenset[str]:
        graph = self.given.graph
        return graph.behind([graph.outputs[self.wiring.loss]] if self.wiring.loss is not None else self.wiring.outputs)

    def step(self, batch: Parts) -> float:
        loss = self.gradients(batch).loss
        self.apply(batch)
        return loss

    @np.errstate(all="ignore")
    def apply(self, batch: Parts) -> None:
        if self._last is None:
            raise Unsupported("no gradients were computed before the step")
        self.params = self._stepper.apply(dict(self.params), self._last.by_path)
        if self._state:
            self._state = self._next

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

    def double(self) -> "MithrilBench":
        if not self._plain:
            kind = self.given.physical.backend.backend_type
            raise Unsupported(f"a model compiled for the {kind} backend computes in the precision of that backend")
        wide = {key: np.asarray(a, np.float64) if arrays.is_float(a) else a for key, a in self.params.items()}
        given = Given(self.given.physical, self.given.graph, wide, self._state)
        return MithrilBench(given, self.subject, copy.deepcopy(self._stepper.optimiser), wide=True)

    def explain_failure(self, error: Exception, phase: str) -> Failure:
        return explain(error, phase)

    @contextmanager
    def answers_changed(self, change: Callable[[Any], Any]) -> Iterator[None]:
        self._change = change
        try:
            yield
        finally:
            self._change = None
