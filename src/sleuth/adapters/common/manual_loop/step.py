"""What is noted of one step while the user's loop takes it."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sleuth import kernel
from sleuth.adapters.common.manual_loop.loop_calls import Heard
from sleuth.adapters.common.manual_loop.loss_and_predictions import Judged, loss_calls, predictions
from sleuth.adapters.common.manual_loop.made_values import Made, MadeValues
from sleuth.core.observation import Accumulation, Frame, NotFinite, Observation, Part, Role, Step
from sleuth.core.statistics import norm_of

# Looks that may wait to be drained: they hold copies of all weights, of gradients, and of what layers made.
LEAST_ROOM = 16
ROOM_BYTES = 128 << 20
# The number of a loss that the model itself, or a whole training step, has told.
OWN = -1


@dataclass
class Notes:
    """Filled on the training thread. What is measured there is copied: the loop goes on to write into its arrays."""

    looked: bool
    tentative: list[tuple[int, float]] = field(default_factory=list)  # (which function, value): since the last forward
    losses: list[list[tuple[int, float]]] = field(default_factory=list)  # of each backward
    heard: list[Judged] = field(default_factory=list)  # what the losses were given, since the last forward
    judged: list[Judged] = field(default_factory=list)
    scales: list[float | None] = field(default_factory=list)  # of each backward: what it was given, of what the loss said
    made: list[Made] = field(default_factory=list)
    gradients: dict[str, np.ndarray] = field(default_factory=dict)
    before: dict[str, np.ndarray] = field(default_factory=dict)

    def forward(self) -> None:
        """What was heard since the forward before, and led to no backward, is another's."""
        self.tentative, self.heard = [], []
        if not self.losses:
            self.made = []

    def backward(self) -> None:
        self.losses.append(self.tentative)
        self.judged += self.heard
        self.tentative, self.heard = [], []

    def room(self) -> int:
        """How many looks like this one may wait."""
        held = [*self.before.values(), *self.gradients.values(), *(m.values for m in self.made), *(j.output for j in self.judged)]
        return max(LEAST_ROOM, ROOM_BYTES // max(1, 2 * sum(array.nbytes for array in held)))

    def give_up_look(self) -> None:
        self.looked = False
        self.made, self.judged, self.gradients, self.before = [], [], {}, {}

    def loss(self) -> float | None:
        """Of several backwards their mean; None where two functions were heard and neither can be told to be the step's."""
        return told(self.losses if any(self.losses) else [self.tentative] if self.tentative else [])


def told(losses: list[list[tuple[int, float]]]) -> float | None:
    values = [_told(part) for part in losses if part]
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _told(part: list[tuple[int, float]]) -> float | None:
    own = [value for which, value in part if which == OWN]
    if own or len({which for which, _ in part}) != 1:
        return own[-1] if own else None
    return part[0][1]


class Taken(NamedTuple):
    """A step that was taken. It is made into observations off the training thread."""

    notes: Notes
    step: int
    lr: float | None
    after: Mapping[str, np.ndarray]  # the weights, where it was looked at
    seconds: Mapping[str, float]
    heard: Heard
    last: str  # "step", or one of its kinds
    loss: float | None
    divided: float | None = None  # see accumulators.Summed
    said: tuple[Observation, ...] = ()
    unusual: bool = False  # followed from its middle on


def observations(taken: Taken, inside: Iterable[Observation] = ()) -> list[Observation]:
    """`inside`: what is told of the values inside the model, where it was looked at."""
    notes, step, after = taken.notes, taken.step, taken.after
    found: list[Observation] = [*taken.said, *taken.heard.phases]
    norm = None
    if notes.looked:
        found += inside
        found += list(loss_calls(notes.judged, taken.loss, MadeValues(notes.made)))
        found += list(predictions(notes.judged, step))
        gradients = frame(step, Role.GRADIENT, notes.gradients)
        with np.errstate(all="ignore"):
            updates = {k: after[k] - v for k, v in notes.before.items() if k in after and after[k].shape == v.shape}
        found += [
            f
            for f in (gradients, frame(step, Role.WEIGHT, notes.before or after), frame(step, Role.UPDATE, updates))
            if f is not None
        ]
        norm = None if gradients is None else norm_of(gradients.table)
        found += list(_not_finite(notes, step, taken.loss))
        found += list(_accumulation(taken))
    loss = taken.loss
    found.append(
        Step(
            step,
            loss if loss is not None and math.isfinite(loss) else None,
            taken.lr,
            gradient_norm=norm,
            calls=(*taken.heard.names, taken.last),
            counts=taken.heard.counts,
            training=taken.heard.training,
            seconds=taken.seconds,
            unusual=taken.unusual,
            heard=loss is not None,
        )
    )
    return found


def _not_finite(notes: Notes, step: int, loss: float | None) -> Iterator[NotFinite]:
    if loss is not None and not math.isfinite(loss):
        yield NotFinite(step, "loss", None, int(math.isnan(loss)), int(math.isinf(loss)))
    bad = next(((k, g) for k, g in notes.gradients.items() if not np.isfinite(g).all()), None)
    if bad is not None:
        yield NotFinite(step, "gradient", bad[0], int(np.isnan(bad[1]).sum()), int(np.isinf(bad[1]).sum()))


def _accumulation(taken: Taken) -> Iterator[Accumulation]:
    """Several backwards of one step."""
    notes, parts = taken.notes, len(taken.notes.losses)
    if parts < 2:
        return
    divided = taken.divided
    told = []
    for values, scale, judged in zip(notes.losses, notes.scales, _each(notes.judged, parts), strict=False):
        returned = _told(values)
        value = None if returned is None or scale is None or divided is None else returned * scale / divided
        target = judged.target if judged is not None else None
        about = () if target is None or not target.size else (float(target.min()), float(target.max()), float(target.mean()))
        calls = list(loss_calls([judged], None, MadeValues([]))) if judged is not None else []
        reduction = calls[0].reduction if calls else None
        name, place = (judged.name, judged.location) if judged is not None else ("", None)
        told.append(Part(value, returned if value is not None else None, name, reduction, about, place))
    yield Accumulation(taken.step, tuple(told), taken.heard.counts.get("forward", 0), touched=divided is None)


def _each(judged: list[Judged], parts: int) -> list[Judged | None]:
    return list(judged) if len(judged) == parts else [None] * parts


def frame(step: int, role: Role, arrays: Mapping[str, np.ndarray]) -> Frame | None:
    if not arrays:
        return None
    return Frame(step, role, tuple(arrays), kernel.measure(list(arrays.values())))


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
