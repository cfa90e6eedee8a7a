"""The joint copy of model, loss and optimiser that probes work on."""

import copy
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from sleuth.adapters.torch.architecture import loss_name
from sleuth.adapters.torch.compared import LossArguments
from sleuth.adapters.torch.copying import deep_copy
from sleuth.adapters.torch.failure import explain
from sleuth.adapters.torch.failures.in_place import name_the_line
from sleuth.adapters.torch.observing import Hearing
from sleuth.adapters.torch.usage import calls_heard, detached, follow
from sleuth.core.contract.adapter import Bench, Compared, Gradients
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.observation import Failure, Observation
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts, Subject, Usage, call_model
from sleuth.core.words import kind_of

# Used only where the user gave no optimiser: it memorises a batch at almost any scale.
STAND_IN_LR = 1e-3


@contextmanager
def quiet() -> Iterator[None]:
    """What torch warns about in the user's code is what the checks judge; hundreds of steps would only repeat it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def open_bench(subject: Subject) -> Iterator[Bench]:
    try:
        model, loss, optimiser = deep_copy((subject.model, subject.loss, subject.optimizer))
        _unbind(optimiser)
        note = None
    except Exception as error:  # a model may hold what cannot be copied: locks, graphs, open files
        model, loss, optimiser = subject.model, subject.loss, subject.optimizer
        note = f"the model cannot be copied ({type(error).__name__}: {error}); the original was used and put back"
    bench = TorchBench(model, loss, optimiser, subject.step, loss_name(subject) or "loss", subject.answers)
    bench.note = note
    bench.known = _ids_of(subject.model, subject.optimizer)
    _require_shapes(model)
    before = bench.snapshot()
    try:
        yield bench
    finally:
        bench.restore(before)


@dataclass(frozen=True)
class Snapshot:
    tensors: dict[str, torch.Tensor]
    optimiser: Any
    python: Any
    numpy: Any
    torch: torch.Tensor


class TorchBench(Bench):
    def __init__(self, model: nn.Module, loss: Any, optimiser: Any, step: Any, name: str, answers: Any = None) -> None:
        self.model = model
        self._loss = loss
        self._step = step
        self._name = name
        self.answers = answers  # what a model that returns its loss returns -> its answers
        self._own_optimiser = not isinstance(optimiser, torch.optim.Optimizer)
        self.optimiser = self._stand_in(optimiser) if self._own_optimiser else optimiser
        self._modes = [(m, m.training) for m in model.modules()]
        self._latest: Parts | None = None
        self.known: set[int] = set()  # what a closure holds is not copied: the user's own parameters, by id
        self.first_names = {name for name, _ in model.named_parameters()}

    def _stand_in(self, given: Any) -> torch.optim.Optimizer | None:
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        if callable(given):
            return given(self.model.parameters())
        return torch.optim.Adam(trainable, lr=STAND_IN_LR) if trainable else None

    @property
    def has_users_optimiser(self) -> bool:
        return not self._own_optimiser

    def known_parameters(self) -> set[int]:
        """By id: of the copy and of the user's own objects, as far as the model knew them at first or an optimiser holds them."""
        loss = self._loss.parameters() if isinstance(self._loss, nn.Module) else ()
        held = [p for group in self.optimiser.param_groups for p in group["params"]] if self.optimiser is not None else []
        own = (p for name, p in self.model.named_parameters() if name in self.first_names)
        return self.known | {id(p) for p in (*own, *loss, *held)}

    def paths(self) -> tuple[str, ...]:
        return tuple(name for name, p in self.model.named_parameters() if p.requires_grad)

    def parameter(self, path: str) -> Any:
        return self.model.get_parameter(path)

    def write(self, path: str, values: np.ndarray) -> None:
        parameter = self.model.get_parameter(path)
        parameter.data.copy_(torch.as_tensor(values).to(parameter.dtype))

    def snapshot(self) -> Snapshot:
        tensors = {name: t.detach().clone() for name, t in self._tensors()}
        optimiser = copy.deepcopy(self.optimiser.state_dict()) if self.optimiser is not None else None
        return Snapshot(tensors, optimiser, random.getstate(), np.random.get_state(), torch.get_rng_state())

    def restore(self, snapshot: Snapshot) -> None:
        for name, tensor in self._tensors():
            if name in snapshot.tensors:
                tensor.data.copy_(snapshot.tensors[name])
        if self.optimiser is not None:
            self.optimiser.load_state_dict(copy.deepcopy(snapshot.optimiser))
            self.optimiser.zero_grad(set_to_none=True)
        self.model.zero_grad(set_to_none=True)
        random.setstate(snapshot.python)
        np.random.set_state(snapshot.numpy)
        torch.set_rng_state(snapshot.torch)

    def _tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Parameters and buffers of the model, of a loss that has some, and stray tensors the optimiser holds."""
        yield from self.model.named_parameters()
        yield from self.model.named_buffers()
        if isinstance(self._loss, nn.Module):
            yield from ((f"loss:{n}", t) for n, t in (*self._loss.named_parameters(), *self._loss.named_buffers()))
        if self.optimiser is not None:
            for g, group in enumerate(self.optimiser.param_groups):
                yield from ((f"optimiser:{g}.{i}", p) for i, p in enumerate(group["params"]))

    def set_training(self, on: bool) -> None:
        self.model.train(on)
        if on and self._modes[0][1]:
            for module, mode in self._modes:
                module.training = mode

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        hearing = Hearing(self.model, self._name)
        failure: Observation | None = None
        value: Any = None
        batch = _native(batch)
        graph = torch.enable_grad() if self.paths() else torch.no_grad()
        try:
            with quiet(), graph, hearing.listener.listening():
                hearing.expect(batch.target)
                if self._step is not None:
                    value = self._step(self.model, batch.raw)
                else:
                    output = self._call(batch.inputs)
                    value = self._loss(output, batch.target) if self._loss is not None else None
        except Exception as error:
            failure = explain(error, hearing.phase, self.model, hearing.listener.ops)
        alone = None if self._step is not None or self._loss is None else lambda output: self._loss(output, batch.target)
        with quiet():
            yield from hearing.observations(step, value, batch.target, failure is not None, alone)
        if failure is None and (self._step is not None or self._loss is not None):
            failure = self._not_one_number(value)
        if failure is not None:
            yield failure

    def _not_one_number(self, loss: Any) -> Observation | None:
        try:
            self._require_scalar(loss)
        except NotOneNumber as error:
            return self.explain_failure(error, "backward")
        return None

    def _require_scalar(self, loss: Any) -> None:
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            got = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else kind_of(loss)
            raise NotOneNumber(f"the loss is not one number but {got}; average it: loss.mean(), or reduction='mean'")

    def _call(self, inputs: Any) -> Any:
        return call_model(self.model, self.model.forward, inputs)

    def _compute(self, batch: Parts) -> torch.Tensor:
        batch = _native(batch)
        if self._step is not None:
            loss = self._step(self.model, batch.raw)
        elif self._loss is not None:
            loss = self._loss(self._call(batch.inputs), batch.target)
        else:
            raise Unsupported("no loss was given")
        self._require_scalar(loss)
        return loss.reshape(())

    @quiet()
    def forward(self, inputs: Any) -> Any:
        if self.answers is not None:
            raise Unsupported("the model returns its loss: it cannot be called without its target")
        with torch.no_grad():
            return self._call(_tensors(inputs))

    @quiet()
    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        heard: list[Any] = []
        with torch.no_grad():
            if self._step is None:
                return (self.forward(batch.inputs),)
            with calls_heard(self.model, lambda given, output: heard.append(detached(output))), LossArguments() as mode:
                self._compute(batch)
        return tuple(heard) if self.answers is None else self.answered(heard, mode.heard)

    def answered(self, heard: list[Any], compared: list[Compared]) -> tuple[Any, ...]:
        """Of a model that returns nothing but its loss: what a loss function inside was given."""
        assert self.answers is not None
        try:
            return tuple(self.answers(output) for output in heard)
        except Unsupported:
            if not compared:
                raise
            return tuple(call.output for call in compared)

    @quiet()
    def usage(self, batch: Parts) -> Usage | None:
        native, step = _native(batch), self._step
        if step is None:
            return None
        paths = {id(a): path for path, a in leaves(batch.raw, _is_array)}
        guess = frozenset(paths[id(a)] for _, a in leaves(batch.target, _is_array) if id(a) in paths)
        return follow(self.model, native.raw, lambda: step(self.model, native.raw), guess)

    @quiet()
    def loss(self, batch: Parts) -> float:
        with torch.no_grad():
            return float(self._compute(batch))

    @quiet()
    def compute(self, batch: Parts) -> torch.Tensor:
        """The loss with its graph."""
        return self._compute(batch)

    def clear_gradients(self) -> None:
        self.model.zero_grad(set_to_none=True)
        if self.optimiser is not None:
            self.optimiser.zero_grad(set_to_none=True)

    @quiet()
    def gradients(self, batch: Parts) -> Gradients:
        self.clear_gradients()
        self._latest = batch
        loss = self._compute(batch)
        loss.backward()
        by_path = {n: p.grad for n, p in self.model.named_parameters() if p.requires_grad}
        return Gradients(float(loss.detach()), by_path)

    def step(self, batch: Parts) -> float:
        loss = self.gradients(batch).loss
        self.apply(batch)
        return loss

    @quiet()
    def apply(self, batch: Parts) -> None:
        optimiser = self.optimiser
        if optimiser is None:
            raise Unsupported("no parameter is trainable, so there is nothing to step")

        def closure() -> torch.Tensor:
            with torch.enable_grad():
                optimiser.zero_grad()
                loss = self._compute(batch)
                loss.backward()
            return loss

        if isinstance(optimiser, torch.optim.LBFGS):
            optimiser.step(closure)
        else:
            optimiser.step()

    @property
    def lr(self) -> float | None:
        if self.optimiser is None or self._own_optimiser:
            return None
        return float(self.optimiser.param_groups[0]["lr"])

    def set_lr(self, lr: float) -> None:
        if self.optimiser is None:
            raise Unsupported("no parameter is trainable, so there is no rate to set")
        first = float(self.optimiser.param_groups[0]["lr"])
        for group in self.optimiser.param_groups:
            value = lr * float(group["lr"]) / first if first > 0 else lr
            group["lr"] = torch.as_tensor(value) if isinstance(group["lr"], torch.Tensor) else value

    @property
    def weight_decay(self) -> float | None:
        if self.optimiser is None or self._own_optimiser:
            return None
        found = [float(g["weight_decay"]) for g in self.optimiser.param_groups if g.get("weight_decay") is not None]
        return max(found, default=None)

    def scale_weight_decay(self, factor: float) -> None:
        for group in self.optimiser.param_groups if self.optimiser is not None else ():
            if group.get("weight_decay") is not None:
                group["weight_decay"] = group["weight_decay"] * factor

    def double(self) -> "TorchBench":
        try:
            model, loss = deep_copy((self.model, self._loss))
        except Exception as error:
            raise Unsupported(f"the model cannot be copied: {error}") from None
        model = model.double()
        loss = loss.double() if isinstance(loss, nn.Module) else loss
        return DoubleBench(model, loss, None, self._step, self._name, self.answers)

    def explain_failure(self, error: Exception, phase: str) -> Failure:
        failure = explain(error, phase, self.model)
        batch = self._latest
        if phase == "backward" and batch is not None:
            failure = name_the_line(failure, self.model, lambda: self._compute(batch))
        return failure


class DoubleBench(TorchBench):
    """Feeds float64: every floating input and target is widened on its way in, and what a model makes for itself, such as a
    first hidden state, is float64 as well."""

    def _compute(self, batch: Parts) -> torch.Tensor:
        wide = Parts(*(_widen(part) for part in (batch.inputs, batch.target, batch.raw)))
        with _wide_by_default():
            return super()._compute(wide)

    def forward(self, inputs: Any) -> Any:
        with _wide_by_default():
            return super().forward(_widen(inputs))


@contextmanager
def _wide_by_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _unbind(optimiser: Any) -> None:
    """A schedule puts a `step` into its optimiser that is bound to that one; on a copy it would step the user's."""
    if isinstance(optimiser, torch.optim.Optimizer):
        vars(optimiser).pop("step", None)


def _ids_of(model: nn.Module, optimiser: Any) -> set[int]:
    groups = optimiser.param_groups if isinstance(optimiser, torch.optim.Optimizer) else ()
    return {id(p) for p in (*model.parameters(), *(p for group in groups for p in group["params"]))}


def _require_shapes(model: nn.Module) -> None:
    lazy = next((n for n, t in (*model.named_parameters(), *model.named_buffers()) if nn.parameter.is_lazy(t)), None)
    if lazy is not None:
        raise UnusableInput(
            f"{lazy} has no shape yet, because its layer is lazy. Run the model once on a batch, model(x), before you make the "
            "optimiser and hand it over."
        )


class NotOneNumber(ValueError):
    """A loss that backward cannot start from."""


def _is_array(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor | np.ndarray)


def _tensors(tree: Any) -> Any:
    return map_arrays(tree, lambda a: torch.as_tensor(a) if isinstance(a, np.ndarray) else a, _is_array)


def _native(batch: Parts) -> Parts:
    return Parts(_tensors(batch.inputs), _tensors(batch.target), _tensors(batch.raw))


def _widen(tree: Any) -> Any:
    def widen(array: Any) -> Any:
        tensor = torch.as_tensor(array)
        return tensor.double() if tensor.is_floating_point() else tensor

    return map_arrays(tree, widen, _is_array)
