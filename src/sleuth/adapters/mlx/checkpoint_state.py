"""What a bench of MLX holds beside its trainable parameters."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from mlx.utils import tree_unflatten

from sleuth.adapters.mlx.arrays import converted
from sleuth.adapters.mlx.bench import own_bench
from sleuth.adapters.mlx.model_parts import is_buffer, parameters
from sleuth.core.contract.adapter import Bench, CheckpointState


class MlxCheckpointState(CheckpointState):
    def model_and_optimiser(self, bench: Bench) -> tuple[Any, Any]:
        held = own_bench(bench)
        return held.model, held.optimiser if held.has_users_optimiser else None

    def statistics(self, bench: Bench) -> Mapping[str, Any]:
        return {e.path: e.array for e in parameters(own_bench(bench).model) if is_buffer(e)}

    def write_statistic(self, bench: Bench, path: str, values: np.ndarray) -> None:
        model = own_bench(bench).model
        entry = next(e for e in parameters(model) if e.path == path)
        model.update(tree_unflatten([(path, converted(values, entry.array.dtype))]))
