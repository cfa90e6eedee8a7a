"""What a bench of JAX holds beside its trainable parameters."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.jax.bench import JaxBench
from sleuth.adapters.jax.forms import is_inexact, path_of
from sleuth.core.contract.adapter import Bench, CheckpointState
from sleuth.core.errors import Unsupported

VALUES = "weights and optimiser states of JAX are values: only an nnx.Module and its nnx.Optimizer can be changed in place"


class JaxCheckpointState(CheckpointState):
    def model_and_optimiser(self, bench: Bench) -> tuple[Any, Any]:
        found = _own(bench).lend()
        if found is None:
            raise Unsupported(VALUES)
        return found

    def statistics(self, bench: Bench) -> Mapping[str, Any]:
        held = _own(bench)
        held.take_back()
        return {path_of(keys): leaf for keys, leaf in jax.tree_util.tree_flatten_with_path(held.rest)[0] if is_inexact(leaf)}

    def write_statistic(self, bench: Bench, path: str, values: np.ndarray) -> None:
        held = _own(bench)
        held.take_back()

        def written(keys: Any, leaf: Any) -> Any:
            return jnp.asarray(np.asarray(values), leaf.dtype) if path_of(keys) == path and is_inexact(leaf) else leaf

        held.rest = jax.tree_util.tree_map_with_path(written, held.rest)


def _own(bench: Bench) -> JaxBench:
    if not isinstance(bench, JaxBench):
        raise Unsupported("this bench does not hold a model of JAX")
    return bench
