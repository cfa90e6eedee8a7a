"""What is noted of one step on the training thread, while the user's loop takes it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sleuth.adapters.common.manual_loop.loss_and_predictions import Judged
from sleuth.adapters.common.manual_loop.made_values import Made
from sleuth.adapters.listening.calls import Heard
from sleuth.core.observation import Observation
from sleuth.core.observation.calls import CallKind

# The number of a loss that the model itself, or a whole training step, has told.
OWN = -1
# Which function, and what it said.
Told = tuple[int, float]


@dataclass
class Inside:
    """Values inside the model, where a step was looked at: made into observations off the training thread."""

    tell: Callable[[], Iterable[Observation]]
    size: int  # bytes


@dataclass
class Notes:
    """What is measured later is copied: the loop goes on to write into its arrays."""

    looked: bool
    tentative: list[Told] = field(default_factory=list)  # since the last forward
    losses: list[list[Told]] = field(default_factory=list)  # of each backward
    heard: list[Judged] = field(default_factory=list)  # what the losses were given, since the last forward
    judged: list[Judged] = field(default_factory=list)
    scales: list[float | None] = field(default_factory=list)  # of each backward: what it was given, of what the loss said
    made: list[Made] = field(default_factory=list)
    inside: list[Inside] = field(default_factory=list)
    gradients: dict[str, np.ndarray] = field(default_factory=dict)
    before: dict[str, np.ndarray] = field(default_factory=dict)  # weights
    is_checked: bool = False  # the gradients were found finite, or an alarm was raised

    def forward(self) -> None:
        """What was heard since the forward before, and led to no backward, is another's."""
        self.tentative, self.heard = [], []
        if not self.losses:
            self.made = []

    def add_loss(self, number: int, value: float) -> None:
        late = self.losses and not self.losses[-1] and not self.tentative
        (self.losses[-1] if late else self.tentative).append((number, value))

    def backward(self) -> None:
        self.losses.append(self.tentative)
        self.judged += self.heard
        self.tentative, self.heard = [], []

    def loss(self) -> float | None:
        """Of several backwards their mean; None where two functions were heard and neither can be told to be the step's."""
        return told_by(self.losses if any(self.losses) else [self.tentative] if self.tentative else [])

    @property
    def size(self) -> int:
        held = [*self.before.values(), *self.gradients.values(), *(m.values for m in self.made), *(j.output for j in self.judged)]
        return sum(array.nbytes for array in held) + sum(part.size for part in self.inside)


def told_by(losses: list[list[Told]]) -> float | None:
    values = [told_part(part) for part in losses if part]
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def told_part(part: list[Told]) -> float | None:
    """Of one backward."""
    own = [value for which, value in part if which == OWN]
    if own or len({which for which, _ in part}) != 1:
        return own[-1] if own else None
    return part[0][1]


class TakenStep(NamedTuple):
    """A step that was taken. It is made into observations off the training thread."""

    notes: Notes
    step: int
    kind: CallKind  # STEP, or one of its kinds
    loss: float | None
    lr: float | None
    after: Mapping[str, np.ndarray]  # the weights, where it was looked at
    seconds: float
    waited: Mapping[str, float]  # seconds, for data
    heard: Heard
    training: bool
    divided: float | None = None  # see gradient_sums
    late_loss: Any = None  # an array that was not waited for
    unusual: bool = False  # followed from its middle on


def number_in(returned: Any) -> float | None:
    """The loss in what a loss function returned: one number, or the first of several things."""
    value = returned[0] if isinstance(returned, tuple) and returned else returned
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind == "f":
        return float(value.reshape(()))
    if isinstance(value, float | np.floating):
        return float(value)
    return None


def number_first(returned: Any) -> Any:
    """A training step may return its loss anywhere in a tuple."""
    if not isinstance(returned, tuple):
        return returned
    return next((v for v in returned if number_in(v) is not None), None)
