"""Which parameters of a model steps are taken of. MLX's optimisers hold none: what a step is given decides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.arrays import values
from sleuth.adapters.mlx.describing import describe
from sleuth.adapters.mlx.model_parts import modules
from sleuth.adapters.mlx.watching.array_names import weights
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.adapters.mlx.watching.recorder import NotingRecorder
from sleuth.core.subject import Subject

# Fewer may be a matter of turns: another part of the model at every second step.
LEAST_LOOKS = 6


class SteppedParameters(NotingRecorder):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._parts = {id(module): path for path, module in modules(model)}
        self._names: set[str] = set()
        self._paths: set[str] = set()
        self._looks = 0
        self._first: Mapping[str, np.ndarray] | None = None

    def path_of(self, target: Any) -> str | None:
        """Of what a step is taken of, in the model; None: it is none of it."""
        return self._parts.get(id(target))

    def begins(self, target: Any) -> None:
        """At every step."""
        path = self._parts.get(id(target))
        if path:  # a part of the model; of the whole, gradients may be those of a part
            self._paths.add(path)

    def looked(self, look: Look, copy: LookCopy) -> None:
        if copy.gradients:
            self._names.update(copy.gradients)
            self._looks += 1
            self._first = copy.before if self._first is None else self._first

    def ended(self, model: nn.Module, optimiser: Optimizer | None) -> None:
        """Marks those that no step was ever taken of; nothing is said where there are none, or where too little was seen."""
        if self._looks < LEAST_LOOKS or not self._names or self._first is None:
            return
        now = weights(model)
        left_out = {name for name in now if not self._was_stepped(name) and _stays(self._first.get(name), now[name])}
        if left_out:
            found = describe(Subject(model, None, optimizer=optimiser))
            marked = tuple(replace(p, optimised=False) if p.path in left_out else p for p in found.parameters)
            self.notes.append(replace(found, parameters=marked))

    def _was_stepped(self, name: str) -> bool:
        return name in self._names or any(name.startswith(f"{path}.") for path in self._paths)


def _stays(one: np.ndarray | None, other: mx.array) -> bool:
    return one is not None and one.shape == tuple(other.shape) and np.array_equal(one, values(other))
