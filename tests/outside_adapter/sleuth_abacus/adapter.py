"""Arrays of Abacus, and what a training is made of. Each further capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from abacus import Array, Linear, Module, ReLU, Sequential

from sleuth import kernel
from sleuth.adapters.common.machine import machine
from sleuth.core.contract.adapter import Adapter, Attended, Bench, Describes, Discovered, Discovers, Steps, Watches, Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Architecture, Layer, Parameter, Settings
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject
from sleuth_abacus.bench import open_bench
from sleuth_abacus.discovery import AbacusDiscovery
from sleuth_abacus.watching import AbacusWatching

FAMILIES: dict[type, str] = {Linear: "linear", ReLU: "activation", Sequential: "container"}


class AbacusAdapter(Adapter, Describes, Steps, Watches, Discovers):
    name = "abacus"

    def claims(self, thing: Any) -> bool:
        return isinstance(thing, Module)

    def is_array(self, thing: Any) -> bool:
        return isinstance(thing, Array)

    def values(self, array: Any) -> np.ndarray:
        return array.data

    def like(self, values: np.ndarray, array: Any) -> Any:
        return Array(np.asarray(values).astype(array.dtype))

    def dtype(self, array: Any) -> str:
        return str(array.dtype)

    def device(self, array: Any) -> str:
        return "cpu"

    def measure(self, arrays: Sequence[Any]) -> np.ndarray:
        return kernel.measure([array.data for array in arrays])

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return None

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return random_preserved((subject.train, subject.validation))

    def architecture(self, subject: Subject) -> Architecture:
        modules = dict(subject.model.modules())
        held = None if subject.optimizer is None else {id(array) for array in subject.optimizer.parameters.values()}
        return Architecture(
            tuple(Layer(path, type(m).__name__, FAMILIES.get(type(m), "other"), _settings(m)) for path, m in modules.items()),
            tuple(_parameter(path, array, modules, held) for path, array in subject.model.parameters().items()),
        )

    def settings(self, subject: Subject) -> Settings:
        optimiser = subject.optimizer
        return Settings(
            self.name,
            getattr(subject.loss, "__name__", None),
            None if optimiser is None else type(optimiser).__name__,
            None if optimiser is None else optimiser.lr,
            {} if optimiser is None else {"weight_decay": optimiser.weight_decay},
            next((str(array.dtype) for array in subject.model.parameters().values()), None),
            machine=machine(),
        )

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(subject)

    def watch(
        self,
        model: Any,
        optimisers: Sequence[Any],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> Watching:
        return AbacusWatching(model, every=every, overhead=overhead, guard=guard)

    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> AbacusDiscovery:
        return AbacusDiscovery(begin, steps)


def _settings(module: Module) -> dict[str, Any]:
    if isinstance(module, Linear):
        inputs, outputs = module.weight.shape
        return {"in": inputs, "out": outputs, "bias": module.bias is not None}
    return {"activation": "relu"} if isinstance(module, ReLU) else {}


def _parameter(path: str, array: Array, modules: dict[str, Module], held: set[int] | None) -> Parameter:
    layer = path.rpartition(".")[0]
    optimised = None if held is None else id(array) in held
    family = FAMILIES.get(type(modules[layer]), "other")
    return Parameter(path, array.shape, str(array.dtype), "cpu", True, optimised, layer, family)
