"""What a bench of torch holds beside its trainable parameters."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from sleuth.adapters.torch.bench import TorchBench
from sleuth.core.contract.adapter import Bench, CheckpointState
from sleuth.core.errors import Unsupported


class TorchCheckpointState(CheckpointState):
    def model_and_optimiser(self, bench: Bench) -> tuple[Any, Any]:
        held = _torch(bench)
        return held.model, held.optimiser if held.has_users_optimiser else None

    def statistics(self, bench: Bench) -> Mapping[str, Any]:
        return {name: buffer for name, buffer in _torch(bench).model.named_buffers() if buffer.is_floating_point()}

    def write_statistic(self, bench: Bench, path: str, values: np.ndarray) -> None:
        buffer = _torch(bench).model.get_buffer(path)
        buffer.data.copy_(torch.as_tensor(values).to(buffer.dtype))


def _torch(bench: Bench) -> TorchBench:
    if not isinstance(bench, TorchBench):
        raise Unsupported("this bench does not hold a torch model")
    return bench
