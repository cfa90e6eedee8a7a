"""What a bench of a hand-written model holds beside its parameters."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sleuth.adapters.numpy.bench import NumpyBench
from sleuth.adapters.numpy.model_parts import Parameters, layers
from sleuth.core.contract.adapter import Bench, CheckpointState
from sleuth.core.errors import Unsupported

# An array that is no parameter may be a cache; only these names say that it is kept from step to step.
NAMES = ("running_mean", "running_var", "moving_mean", "moving_var", "moving_variance", "running_variance")


class NumpyCheckpointState(CheckpointState):
    def model_and_optimiser(self, bench: Bench) -> tuple[Any, Any]:
        held = _own(bench)
        return held.model, held._optimiser

    def statistics(self, bench: Bench) -> Mapping[str, Any]:
        model = _own(bench).model
        learned = {id(a) for a in Parameters(model).arrays().values()}
        found = {}
        for path, layer in [("", model), *layers(model)]:
            for name in NAMES:
                array = getattr(layer, "__dict__", {}).get(name)
                if isinstance(array, np.ndarray) and id(array) not in learned:
                    found[f"{path}.{name}" if path else name] = array
        return found

    def write_statistic(self, bench: Bench, path: str, values: np.ndarray) -> None:
        self.statistics(bench)[path][...] = values


def _own(bench: Bench) -> NumpyBench:
    if not isinstance(bench, NumpyBench):
        raise Unsupported("this bench does not hold a hand-written model")
    return bench
