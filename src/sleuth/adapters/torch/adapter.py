"""The PyTorch adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from sleuth.adapters.torch import cuts, data_sources, flow, loader_workers, measuring, replay, state
from sleuth.adapters.torch.architecture import describe, settings
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
    Bench,
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
)
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.subject import Parts
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

    values = staticmethod(to_numpy)

    def like(self, values: np.ndarray, array: Any) -> Any:
        if isinstance(array, np.ndarray):
            return values.astype(array.dtype)
        return torch.as_tensor(values).to(dtype=array.dtype, device=array.device)

    def dtype(self, array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    def device(self, array: Any) -> str:
        return str(array.device) if isinstance(array, torch.Tensor) else "cpu"

    measure = staticmethod(measuring.measure)
    batches = staticmethod(data_sources.batches)
    rows = staticmethod(data_sources.rows)
    crew = staticmethod(loader_workers.crew)
    preserve = staticmethod(state.preserved)
    architecture = staticmethod(describe)
    settings = staticmethod(settings)
    bench = staticmethod(open_bench)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        return cuts.connection(_own(bench), batch)

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        return flow.flow(_own(bench), batch)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        with answers_changed(_own(bench).model, change):
            return bench.loss(batch)

    watch = staticmethod(TorchWatching)
    discover = staticmethod(Discovery)

    def explain(self, error: BaseException) -> list[Observation]:
        return explain_crash(error, Known())

    replay = staticmethod(replay.replay)


def _own(bench: Bench) -> TorchBench:
    if not isinstance(bench, TorchBench):
        raise Unsupported("this bench does not hold a torch model")
    return bench
