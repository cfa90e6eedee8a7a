"""What recorders are told in MLX, beside what they are told in every framework."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.listening.recorder import Recorder
from sleuth.adapters.mlx.watching.compiled import Compiled
from sleuth.adapters.mlx.watching.differentiated import Differentiated
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.core.observation import Observation


class Gradient(NamedTuple):
    """One that is about to be taken."""

    step: int
    model: nn.Module
    taken: Differentiated
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    looked: bool  # at this step
    optimisers: Sequence[Optimizer]
    listening: ExitStack  # until the gradient is taken


class MlxRecorder(Recorder):
    def gradient_begins(self, gradient: Gradient) -> None: ...

    def gradients(self, raw: dict[str, Any]) -> None:
        """As they were taken, at a step that is looked at: uncomputed."""

    def called(self, model: nn.Module, step: int, graph: bool) -> None:
        """In whatever mode. `graph`: for a gradient."""

    def asked(self, args: tuple[Any, ...], kwargs: dict[str, Any], step: int) -> None:
        """The model, outside of a gradient."""

    def asked_inside(self, given: dict[str, Any], inputs: tuple[str, ...], step: int) -> None:
        """By a compiled function that was given these; `inputs`: paths of what the model gets of it."""

    def compiled_begins(self, step: int, model: nn.Module, optimiser: Optimizer) -> None: ...

    def compiled(self, step: int, done: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], looked: bool) -> None:
        """A step of which only the arguments are seen."""

    def looked(self, look: Look, copy: LookCopy) -> None:
        """Everything that the step is made of has its values now."""

    def ended(self, model: nn.Module, optimiser: Optimizer | None) -> None:
        """The training is over; what is to be said at last is taken afterwards."""


class NotingRecorder(MlxRecorder):
    """Keeps its observations until the step is over."""

    def __init__(self) -> None:
        self.notes: list[Observation] = []

    def take(self) -> list[Observation]:
        found, self.notes = self.notes, []
        return found
