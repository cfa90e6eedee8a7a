"""The joint copy of model, loss and optimiser that probes work on. MLX is lazy: each method has computed what it answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Adam, Optimizer
from mlx.utils import tree_flatten, tree_unflatten

from sleuth.adapters.mlx import parameter_reach, state
from sleuth.adapters.mlx.activity import activity, computed
from sleuth.adapters.mlx.arrays import NotOneNumber, arrays_in, as_mlx, converted, native, require_scalar
from sleuth.adapters.mlx.bounds import guarded, require_in_range
from sleuth.adapters.mlx.copying import copied
from sleuth.adapters.mlx.describing import as_written, loss_name, rate_of
from sleuth.adapters.mlx.failure import explain
from sleuth.adapters.mlx.loss_calls import failed_call, heard_calls, own_call
from sleuth.adapters.mlx.model_parts import is_buffer, last_paths, modules, parameters
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.adapters.mlx.source_lines import function_line
from sleuth.adapters.mlx.trees.tree import Tree
from sleuth.core.contract.adapter import Bench, Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Failure, Observation
from sleuth.core.subject import Parts, Subject, Usage, call_model

# Used only where the user gave no optimiser: it memorises a batch at almost any scale.
STAND_IN_LR = 1e-3


@contextmanager
def open_bench(subject: Subject) -> Iterator[Bench]:
    (model, loss, optimiser), note = _copied(subject)
    bench = MlxBench(model, loss, optimiser, subject)
    bench.note = note
    before = bench.snapshot()
    try:
        yield bench
    finally:
        bench.restore(before)


def _copied(subject: Subject) -> tuple[tuple[Any, Any, Any], str | None]:
    given = (subject.model, subject.loss, subject.optimizer)
    try:
        return copied(*given), None
    except Exception as error:  # a model may hold what cannot be copied: locks, open files
        return given, f"the model cannot be copied ({type(error).__name__}: {error}); the original was used and put back"


class MlxBench(Bench):
    wide = False  # True: everything that goes in is float64

    def __init__(self, model: nn.Module, loss: Any, optimiser: Any, subject: Subject) -> None:
        self.model = model
        self._loss = loss
        self._subject = subject
        self._own_optimiser = not isinstance(optimiser, Optimizer)
        self.optimiser: Optimizer = Adam(STAND_IN_LR, bias_correction=True) if self._own_optimiser else optimiser
        self._modes = [(module, module._training) for _, module in modules(model)]
        self._last: Any = None
        self._gradient_paths = last_paths(model)
        self._unreached: frozenset[str] | None = None

    def paths(self) -> tuple[str, ...]:
        return tuple(e.path for e in parameters(self.model) if e.trainable and not is_buffer(e))

    def parameter(self, path: str) -> mx.array:
        return next(e.array for e in parameters(self.model) if e.path == path)

    def write(self, path: str, values: np.ndarray) -> None:
        new = converted(values, self.parameter(path).dtype)
        if isinstance(self.model, Tree):
            self.model.hold({path: new})  # the name of a part may be a number
        else:
            self.model.update(tree_unflatten([(path, new)]))

    def snapshot(self) -> state.Snapshot:
        held = [m for thing in (self.model, self._loss) if isinstance(thing, nn.Module) for _, m in modules(thing)]
        return state.snapshot(held, self.optimiser)

    def restore(self, snapshot: state.Snapshot) -> None:
        state.restore(snapshot)

    def set_training(self, on: bool) -> None:
        as_given = on and self._modes[0][1]
        for module, mode in self._modes:
            module._set_training_mode(mode if as_given else on)

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        hearing, batch = Hearing(self.model, before=require_in_range), native(batch, wide=self.wide)
        failure, value = None, None
        try:
            with hearing.listening():
                value = self._value(batch)
                mx.eval(hearing.outputs, arrays_in(value))
        except Exception as error:
            failure = self.explain_failure(error, "loss" if _answered(hearing) else "forward")
        yield from activity(computed(hearing.made), step)
        if failure is not None and failure.phase == "loss":
            yield from failed_call(loss_name(self._subject) or "loss", hearing, batch.target)
        if failure is None and self._has_loss:
            yield from self._loss_calls(hearing, value, batch)
            failure = self._not_one_number(value)
        if failure is not None:
            yield failure

    def _loss_calls(self, hearing: Hearing, value: Any, batch: Parts) -> Iterator[Observation]:
        heard = list(heard_calls(hearing.losses, value, computed(hearing.made)))
        if heard:
            yield from heard
            return
        loss = self._loss if self._subject.step is None else None
        ask = None if loss is None else lambda output: loss(output, batch.target)
        output = next(iter(hearing.outputs), None)
        # A loss that was read off a tape knows its lines.
        place = getattr(loss, "location", None) or function_line(loss or self._subject.step)
        meets = getattr(loss, "meets", None)
        call = own_call(loss_name(self._subject) or "loss", output, batch.target, value, hearing, ask, place, meets)
        if call is not None:
            yield call

    @property
    def _has_loss(self) -> bool:
        return self._subject.step is not None or self._loss is not None

    def _not_one_number(self, value: Any) -> Failure | None:
        try:
            require_scalar(value)
        except NotOneNumber as error:
            return self.explain_failure(error, "backward")
        return None

    def call(self, inputs: Any) -> Any:
        return call_model(self.model, self.model.__call__, inputs)

    def _value(self, batch: Parts) -> Any:
        """The loss; the model's answer alone where there is none."""
        if self._subject.step is not None:
            return self._subject.step(self.model, batch.raw)
        output = self.call(batch.inputs)
        return output if self._loss is None else self._loss(output, batch.target)

    def compute(self, batch: Parts) -> mx.array:
        """The loss, uncomputed."""
        if not self._has_loss:
            raise Unsupported("no loss was given")
        with guarded():
            value = self._value(native(batch, wide=self.wide))
        require_scalar(value)
        return value.reshape(())

    def forward(self, inputs: Any) -> Any:
        with guarded():
            output = self.call(as_mlx(inputs, wide=self.wide))
        mx.eval(arrays_in(output))
        return output

    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        if self._subject.step is None:
            return (self.forward(batch.inputs),)
        hearing = Hearing(self.model)
        with hearing.listening():
            self._value(native(batch, wide=self.wide))
        mx.eval(arrays_in(hearing.outputs))
        return tuple(hearing.outputs)

    def usage(self, batch: Parts) -> Usage | None:
        return None  # an array of MLX does not tell what it was made of

    def loss(self, batch: Parts) -> float:
        return float(self.compute(batch).item())

    def loss_with(self, batch: Parts, change: Callable[[Any], Any]) -> float:
        hearing = Hearing(self.model, change=change)
        with hearing.listening():
            return self.loss(batch)

    @property
    def has_users_optimiser(self) -> bool:
        return not self._own_optimiser

    def differentiate(self, batch: Parts) -> float:
        """The loss; its gradients are kept for `apply`."""
        value, self._last = nn.value_and_grad(self.model, lambda: self.compute(batch))()
        mx.eval(value, self._last)
        return float(value.item())

    def gradients(self, batch: Parts) -> Gradients:
        value = self.differentiate(batch)
        found = dict(tree_flatten(self._last))
        by_path = {path: found.get(self._gradient_paths.get(path, path)) for path in self.paths()}
        unreached = self.unreached(batch)
        return Gradients(value, {path: None if path in unreached else g for path, g in by_path.items()})

    def unreached(self, batch: Parts) -> frozenset[str]:
        """Parameters whose gradient is zero whatever the numbers are: the loss does not depend on them."""
        if self._unreached is None:
            before = self.snapshot()
            try:
                self._unreached = parameter_reach.unreached(self.model, self.paths(), partial(self.compute, batch))
            finally:
                self.restore(before)
        return self._unreached

    @contextmanager
    def without_asking_reach(self) -> Iterator[None]:
        """To ask takes passes of its own, which nobody is to hear."""
        kept = self._unreached
        self._unreached = frozenset() if kept is None else kept
        try:
            yield
        finally:
            self._unreached = kept

    def forget_reach(self) -> None:
        """Another batch may take another way through the model."""
        self._unreached = None

    def step(self, batch: Parts) -> float:
        value, self._last = nn.value_and_grad(self.model, lambda: self.compute(batch))()
        self.optimiser.update(self.model, self._last)
        mx.eval(value, self.model.parameters(), self.optimiser.state)  # once: each time another thread has to take over
        return float(value.item())

    def apply(self, batch: Parts) -> None:
        if self._last is None:
            raise Unsupported("no gradients were computed before the step")
        self.optimiser.update(self.model, self._last)
        mx.eval(self.model.parameters(), self.optimiser.state)

    @property
    def lr(self) -> float | None:
        return None if self._own_optimiser else rate_of(self.optimiser)

    def set_lr(self, lr: float) -> None:
        """From now on: a schedule of the user's is set aside."""
        ones = [o for o in state.single(self.optimiser) if "learning_rate" in o._state]
        if not ones:
            raise Unsupported(f"{type(self.optimiser).__name__} has no learning rate of its own")
        first = as_written(ones[0]._state["learning_rate"])
        for one in ones:
            own = as_written(one._state["learning_rate"])
            one._schedulers.pop("learning_rate", None)
            one._state["learning_rate"] = mx.array(lr * own / first if first > 0 else lr)

    @property
    def weight_decay(self) -> float | None:
        if self._own_optimiser:
            return None
        found = [
            o.weight_decay for o in state.single(self.optimiser) if isinstance(getattr(o, "weight_decay", None), int | float)
        ]
        return max(found, default=None)

    def scale_weight_decay(self, factor: float) -> None:
        for one in state.single(self.optimiser):
            if isinstance(getattr(one, "weight_decay", None), int | float):
                one.weight_decay = one.weight_decay * factor

    def double(self) -> "MlxBench":
        if mx.default_device().type != mx.cpu:
            raise Unsupported("MLX computes in float64 on the CPU only, and the model runs on another device")
        try:
            model, loss = copied(self.model, self._loss)
        except Exception as error:
            raise Unsupported(f"the model cannot be copied: {error}") from None
        for thing in (model, loss):
            if isinstance(thing, nn.Module):
                thing.set_dtype(mx.float64)
        from sleuth.adapters.mlx.float64_bench import WideBench

        return WideBench(model, loss, None, self._subject)

    def explain_failure(self, error: Exception, phase: str) -> Failure:
        return explain(error, phase, self.model)


def _answered(hearing: Hearing) -> bool:
    """The model came to its answer, and that could be computed."""
    try:
        mx.eval(arrays_in(hearing.outputs))
    except Exception:  # MLX raises here what it found wrong when it computed
        return False
    return bool(hearing.outputs)


def own_bench(bench: Bench) -> MlxBench:
    if not isinstance(bench, MlxBench):
        raise Unsupported("this bench does not hold a model of MLX")
    return bench
