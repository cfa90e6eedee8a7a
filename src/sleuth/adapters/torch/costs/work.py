"""Time, FLOPs, operations and kept memory of each layer in one forward pass, by hooks and a stopwatch."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from sleuth.adapters.torch.architecture import family_of
from sleuth.adapters.torch.bench import TorchBench
from sleuth.core.contract.workload import LayerWork
from sleuth.core.subject import Parts

Enter = Callable[[str], None]


def work(bench: TorchBench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
    seconds = best_seconds(bench, batch, repeats)
    counts = Counts(bench, batch)
    paths = [path for path, _ in bench.model.named_modules() if path in seconds.calls or not path]
    modules = dict(bench.model.named_modules())
    return tuple(
        LayerWork(
            path,
            kind=type(modules[path]).__name__,
            family=family_of(modules[path]),
            forward=seconds.own[path],
            flops=counts.flops[path],
            operations=counts.operations[path],
            saved=counts.saved[path],
            calls=max(seconds.calls[path], 1),
        )
        for path in paths
    )


@contextmanager
def layers_entered(model: nn.Module, enter: Enter, leave: Enter) -> Iterator[None]:
    """Hooks on the bench's own copy."""
    with ExitStack() as stack:
        for path, module in model.named_modules():
            before = module.register_forward_pre_hook(lambda m, i, path=path: enter(path))
            after = module.register_forward_hook(lambda m, i, o, path=path: leave(path), always_call=True)
            stack.callback(before.remove)
            stack.callback(after.remove)
        yield


class Stopwatch:
    """The time of each layer without that of the layers it calls. What no layer does belongs to the model, ""."""

    def __init__(self, synchronise: Callable[[], None]) -> None:
        self.own: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._synchronise = synchronise
        self._stack: list[str] = []
        self._since = 0.0

    def start(self) -> None:
        self._synchronise()
        self._since = time.perf_counter()

    def enter(self, path: str) -> None:
        self.lap()
        self._stack.append(path)
        self.calls[path] += 1

    def leave(self, path: str) -> None:
        self.lap()
        if self._stack:
            self._stack.pop()

    def lap(self) -> None:
        self._synchronise()
        now = time.perf_counter()
        self.own[self._stack[-1] if self._stack else ""] += now - self._since  # type: ignore[assignment]
        self._since = time.perf_counter()


def best_seconds(bench: TorchBench, batch: Parts, repeats: int) -> Stopwatch:
    """The quickest run: whatever else the machine does only makes one slower."""
    found: list[Stopwatch] = []
    wait = synchroniser(bench)
    for _ in range(max(repeats, 1)):
        watch = Stopwatch(wait)
        with layers_entered(bench.model, watch.enter, watch.leave):
            watch.start()
            bench.compute(batch)
            watch.lap()
        found.append(watch)
    return min(found, key=lambda watch: watch.own.total())


def synchroniser(bench: TorchBench) -> Callable[[], None]:
    """An accelerator works on while Python goes on; on the CPU there is nothing to wait for."""
    parameter = next(bench.model.parameters(), None)
    if parameter is None or parameter.device.type in ("cpu", "meta") or not torch.accelerator.is_available():
        return lambda: None
    return lambda: torch.accelerator.synchronize(parameter.device)


class Counts:
    """Of one forward pass and loss, by layer: FLOPs as torch counts them, operations, bytes kept for the backward pass."""

    def __init__(self, bench: TorchBench, batch: Parts) -> None:
        self.flops: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self.saved: Counter[str] = Counter()
        self._stack: list[str] = []
        self._seen: set[int] = {t.untyped_storage().data_ptr() for t in (*bench.model.parameters(), *bench.model.buffers())}
        self._alive: list[torch.Tensor] = []  # a storage that is freed gives its address to another
        self._flops = FlopCounterMode(display=False)
        self._counted = 0
        kept = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)
        with layers_entered(bench.model, self._enter, self._leave), self._flops, Dispatched(self._operation), kept:
            bench.compute(batch)
            self._lap()
        self._alive.clear()

    @property
    def _layer(self) -> str:
        return self._stack[-1] if self._stack else ""

    def _enter(self, path: str) -> None:
        self._lap()
        self._stack.append(path)

    def _leave(self, path: str) -> None:
        self._lap()
        if self._stack:
            self._stack.pop()

    def _lap(self) -> None:
        total = self._flops.get_total_flops()
        self.flops[self._layer] += total - self._counted
        self._counted = total

    def _operation(self) -> None:
        self.operations[self._layer] += 1

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._alive.append(tensor.detach())
            self.saved[self._layer] += storage.nbytes()
        return tensor


class Dispatched(TorchDispatchMode):
    def __init__(self, heard: Callable[[], None]) -> None:
        super().__init__()
        self._heard = heard

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._heard()
        return func(*args, **(kwargs or {}))
