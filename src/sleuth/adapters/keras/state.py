"""Random states, and whatever else Keras keeps beside its objects."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
from keras.src.backend.common import global_state

from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject

SEEDS = "global_seed_generator"
# Names such as dense_3 are given out by these counters.
NAMES = "object_name_uids"


@contextmanager
def preserved(subject: Subject) -> Iterator[None]:
    """The model itself is never run, only its copy; unless it cannot be copied, and then the bench puts it back."""
    torch: Any = sys.modules.get("torch")
    cpu = None if torch is None else torch.get_rng_state()
    kinds = () if torch is None else (torch.Generator,)
    tracker = global_state.GLOBAL_STATE_TRACKER
    names, seeds = getattr(tracker, NAMES, None), getattr(tracker, SEEDS, None)
    counted, drawn = None if names is None else dict(names), None if seeds is None else _copy(seeds.state)
    closed = (keras.layers.Layer, keras.Variable, *(() if torch is None else (torch.Tensor,)))
    with random_preserved((subject.train, subject.validation), kinds=kinds, closed=closed):
        try:
            yield
        finally:
            if names is not None and counted is not None:
                names.clear()
                names.update(counted)
            setattr(tracker, SEEDS, seeds)
            if seeds is not None:
                seeds.state.assign(drawn)
            if torch is not None:
                torch.set_rng_state(cpu)


def _copy(variable: Any) -> Any:
    value = variable.value
    return value.detach().clone() if hasattr(value, "detach") else value


class Randomness:
    """All random states that a step may draw from."""

    def __init__(self) -> None:
        torch: Any = sys.modules.get("torch")
        self._python, self._numpy = random.getstate(), np.random.get_state()
        self._torch = None if torch is None else torch.get_rng_state()
        seeds = global_state.get_global_attribute(SEEDS)
        self._seeds = None if seeds is None else _copy(seeds.state)

    def put_back(self) -> None:
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        if self._torch is not None:
            sys.modules["torch"].set_rng_state(self._torch)
        seeds = global_state.get_global_attribute(SEEDS)
        if seeds is not None and self._seeds is not None:
            seeds.state.assign(self._seeds)


class Snapshot:
    """Values of variables, an optimiser's settings and random states; it serves more than once."""

    def __init__(self, variables: list[Any], optimiser: Any) -> None:
        self._values = [(variable, _copy(variable)) for variable in variables]
        self._optimiser = optimiser
        self._settings = {name: getattr(optimiser, name, None) for name in ("weight_decay", "_learning_rate")}
        self._random = Randomness()

    def put_back(self) -> None:
        for variable, value in self._values:
            variable.assign(value)
        if self._optimiser is not None:
            for name, value in self._settings.items():
                if hasattr(self._optimiser, name):
                    object.__setattr__(self._optimiser, name, value)
        self._random.put_back()
