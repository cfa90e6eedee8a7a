"""Which parameters of a model steps are taken of. MLX's optimisers hold none: what a step is given decides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx.arrays import values
from sleuth.adapters.mlx.describing import describe
from sleuth.adapters.mlx.model_parts import modules
from sleuth.adapters.mlx.watching.array_names import weights
from sleuth.core.observation import Architecture
from sleuth.core.subject import Subject

# Fewer may be a matter of turns: another part of the model at every second step.
LEAST_LOOKS = 6


class Stepped:
    def __init__(self, model: nn.Module) -> None:
        self._parts = {id(module): path for path, module in modules(model)}
        self._names: set[str] = set()
        self._paths: set[str] = set()
        self._looks = 0
        self._first: dict[str, mx.array] | None = None

    def path_of(self, target: Any) -> str | None:
        """Of what a step is taken of, in the model; None: it is none of it."""
        return self._parts.get(id(target))

    def begins(self, target: Any) -> None:
        """At every step."""
        path = self._parts.get(id(target))
        if path:  # a part of the model; of the whole, gradients may be those of a part
            self._paths.add(path)

    def looked(self, gradients: Mapping[str, Any], before: Mapping[str, mx.array]) -> None:
        self._names.update(gradients)
        self._looks += 1
        self._first = dict(before) if self._first is None else self._first

    def architecture(self, model: nn.Module, optimiser: Any) -> Architecture | None:
        """With those marked that no step was ever taken of; None: there are none, or too little was seen."""
        if self._looks < LEAST_LOOKS or not self._names or self._first is None:
            return None
        now = weights(model)
        left_out = {name for name in now if not self._was_stepped(name) and _stays(self._first.get(name), now[name])}
        if not left_out:
            return None
        found = describe(Subject(model, None, optimizer=optimiser))
        return replace(
            found, parameters=tuple(replace(p, optimised=False) if p.path in left_out else p for p in found.parameters)
        )

    def _was_stepped(self, name: str) -> bool:
        return name in self._names or any(name.startswith(f"{path}.") for path in self._paths)


def _stays(one: mx.array | None, other: mx.array) -> bool:
    return one is not None and one.shape == other.shape and np.array_equal(values(one), values(other))
