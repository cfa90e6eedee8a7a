"""What a bench of Keras holds beside its trainable parameters."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.bench import KerasBench, held_by
from sleuth.adapters.keras.model_parts import variables
from sleuth.core.contract.adapter import Bench, CheckpointState


class KerasCheckpointState(CheckpointState):
    def model_and_optimiser(self, bench: Bench) -> tuple[Any, Any]:
        held = held_by(bench)
        return held.model, held.optimiser if held.has_users_optimiser else None

    def statistics(self, bench: Bench) -> Mapping[str, Any]:
        return {path: variable.value for path, variable in _untrained(held_by(bench)).items()}

    def write_statistic(self, bench: Bench, path: str, values: np.ndarray) -> None:
        variable = _untrained(held_by(bench))[path]
        variable.assign(backend.like(np.asarray(values), variable))


def _untrained(bench: KerasBench) -> dict[str, Any]:
    """Running means and the like."""
    found = {held.path: held.variable for held in variables(bench.model) if held.path not in bench.held}
    return {path: variable for path, variable in found.items() if "float" in backend.dtype(variable)}
