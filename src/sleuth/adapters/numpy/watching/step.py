"""What is noted of one step while the user's loop takes it."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sleuth import kernel
from sleuth.adapters.numpy.activity import activity
from sleuth.adapters.numpy.describing import activation_of, family_of
from sleuth.adapters.numpy.listening import Listener, Made, is_array
from sleuth.core.observation import Frame, Observation, Role, Step
from sleuth.core.statistics import norm_of
from sleuth.core.tree import leaves

# The number of a loss that the model itself, or a whole training step, has told.
OWN = -1


@dataclass
class Notes:
    """Filled on the training thread. What is measured there is copied: the loop goes on to write into its arrays."""

    looked: bool
    began: float = field(default_factory=time.perf_counter)
    calls: list[str] = field(default_factory=list)
    losses: list[tuple[int, float]] = field(default_factory=list)  # (which function, value)
    made: list[Made] = field(default_factory=list)
    gradients: dict[str, np.ndarray] = field(default_factory=dict)
    before: dict[str, np.ndarray] = field(default_factory=dict)

    def call(self, kind: str) -> None:
        if not self.calls or self.calls[-1] != kind:
            self.calls.append(kind)

    def layer(self, path: str, layer: Any, output: Any) -> None:
        array = next((a for _, a in leaves(output, is_array)), None)
        family = family_of(layer)
        if array is not None and array.ndim and family not in ("container", "loss"):
            self.made.append(Made(path, family, activation_of(layer), np.array(array), array, None, None))

    def loss(self) -> float | None:
        """The first that was heard; None where two functions were heard and neither can be told to be the step's."""
        own = [value for which, value in self.losses if which == OWN]
        if own or len({which for which, _ in self.losses}) != 1:
            return own[-1] if own else None
        return self.losses[0][1]


class Taken(NamedTuple):
    """A step that was taken. It is made into observations off the training thread."""

    notes: Notes
    step: int
    lr: float | None
    after: Mapping[str, np.ndarray]  # the weights, where it was looked at
    seconds: float


def observations(taken: Taken, model: Any) -> list[Observation]:
    notes, step, lr, after, seconds = taken
    found: list[Observation] = []
    norm = None
    if notes.looked:
        if notes.made:
            listener = Listener(model)
            listener.made = notes.made
            found += list(activity(listener, step))
        gradients = frame(step, Role.GRADIENT, notes.gradients)
        updates = {k: after[k] - v for k, v in notes.before.items() if k in after and after[k].shape == v.shape}
        found += [f for f in (gradients, frame(step, Role.WEIGHT, after), frame(step, Role.UPDATE, updates)) if f is not None]
        norm = None if gradients is None else norm_of(gradients.table)
    loss = notes.loss()
    found.append(
        Step(
            step,
            loss if loss is not None and math.isfinite(loss) else None,
            lr,
            gradient_norm=norm,
            calls=(*notes.calls, "step"),
            counts={kind: notes.calls.count(kind) for kind in notes.calls},
            seconds={"step": seconds},
            heard=loss is not None,
        )
    )
    return found


def frame(step: int, role: Role, arrays: Mapping[str, np.ndarray]) -> Frame | None:
    if not arrays:
        return None
    return Frame(step, role, tuple(arrays), kernel.measure(list(arrays.values())))


def number_in(returned: Any) -> float | None:
    """The loss in what a loss function returned: one number, or the first of several things."""
    value = returned[0] if isinstance(returned, tuple) and returned else returned
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind == "f":
        return float(value.reshape(()))
    if isinstance(value, float | np.floating):
        return float(value)
    return None
