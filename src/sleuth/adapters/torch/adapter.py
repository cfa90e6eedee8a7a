"""The PyTorch adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from sleuth.adapters.torch import architecture, cuts, data_sources, flow, loader_workers, measuring, replay, state
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.bench import TorchBench, open_bench
from sleuth.adapters.torch.checkpoint_state import TorchCheckpointState
from sleuth.adapters.torch.costs.costs import TorchProfiles
from sleuth.adapters.torch.failures.crash import Known, explain_crash
from sleuth.adapters.torch.inspecting.inspecting import TorchInspects
from sleuth.adapters.torch.layer_values import TorchLayerValues
from sleuth.adapters.torch.substitution import answers_changed
from sleuth.adapters.torch.watching.discovery import Discovery
from sleuth.adapters.torch.watching.watching import TorchWatching
from sleuth.core.contract.adapter import (
    Adapter,
    Attended,
    Bench,
    Crew,
    Describes,
    Discovered,
    Discovering,
    Discovers,
    Employs,
    Explains,
    Orders,
    Replays,
    Rows,
    Steps,
    Substitutes,
    Traces,
    Watches,
    Watching,
)
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.scene import Replayed, Scene
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Observation, Origin, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection, Flow


class TorchAdapter(
    TorchInspects,
    TorchCheckpointState,
    TorchLayerValues,
    TorchProfiles,
    Adapter,
    Describes,
    Discovers,
    Employs,
    Explains,
    Orders,
    Replays,
    Steps,
    Substitutes,
    Traces,
    Watches,
):
    name = "torch"

    def claims(self, thing: Any) -> bool:
        return isinstance(thing, torch.nn.Module)

    def is_array(self, thing: Any) -> bool:
        return isinstance(thing, torch.Tensor | np.ndarray)

    def values(self, array: Any) -> np.ndarray:
        return to_numpy(array)

    def like(self, values: np.ndarray, array: Any) -> Any:
        if isinstance(array, np.ndarray):
            return values.astype(array.dtype)
        return torch.as_tensor(values).to(dtype=array.dtype, device=array.device)

    def dtype(self, array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    def device(self, array: Any) -> str:
        return str(array.device) if isinstance(array, torch.Tensor) else "cpu"

    def measure(self, arrays: Sequence[Any]) -> np.ndarray:
        return measuring.measure(arrays)

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return data_sources.batches(source, batch_size)

    def rows(self, source: Any) -> Rows | None:
        return data_sources.rows(source)

    def crew(self, source: Any) -> Crew | None:
        return loader_workers.crew(source)

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return state.preserved(subject)

    def architecture(self, subject: Subject) -> Architecture:
        return architecture.describe(subject)

    def settings(self, subject: Subject) -> Settings:
        return architecture.settings(subject)

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(subject)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        if not isinstance(bench, TorchBench):
            raise Unsupported("this bench does not hold a torch model")
        return cuts.connection(bench, batch)

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        if not isinstance(bench, TorchBench):
            raise Unsupported("this bench does not hold a torch model")
        return flow.flow(bench, batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return next((o for o in bench.observe(batch, 0) if isinstance(o, Origin)), None)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        if not isinstance(bench, TorchBench):
            raise Unsupported("this bench does not hold a torch model")
        with answers_changed(bench.model, change):
            return bench.loss(batch)

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
        return TorchWatching(model, optimisers, every=every, overhead=overhead, guard=guard, keeps=keeps)

    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        return Discovery(begin, steps)

    def explain(self, error: BaseException) -> list[Observation]:
        return explain_crash(error, Known())

    def replay(self, subject: Subject, scene: Scene) -> Replayed:
        return replay.replay(subject, scene)
