"""One step looked at in full: what was kept of it is computed at once, and then measured."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth import kernel
from sleuth.adapters.mlx.activity import activity
from sleuth.adapters.mlx.arrays import arrays_in, dtype_name, evaluated, is_array, values
from sleuth.adapters.mlx.loss_calls import heard_calls
from sleuth.adapters.mlx.pass_listener import Hearing, Made
from sleuth.adapters.mlx.watching.accumulations import Backward, accumulation
from sleuth.adapters.mlx.watching.rerun_nonfinite import find_origin
from sleuth.core.observation import Frame, LossCall, NotFinite, Observation, Precision, Predictions, Role, Split


@dataclass
class Look:
    """What was kept of a step. Arrays are held by reference, and may be uncomputed."""

    hearings: list[Hearing] = field(default_factory=list)
    again: Callable[[], Any] | None = None  # the user's function, as it was called
    losses: list[Any] = field(default_factory=list)
    held: list[mx.array] = field(default_factory=list)  # losses of earlier steps
    raw: dict[str, mx.array] = field(default_factory=dict)  # gradients as they were taken
    gradients: dict[str, mx.array] = field(default_factory=dict)  # as the step uses them
    parts: list[Backward] = field(default_factory=list)  # where several gradients make a step
    made: list[Made] = field(default_factory=list)  # that are computed
    before: dict[str, mx.array] = field(default_factory=dict)
    after: dict[str, mx.array] = field(default_factory=dict)

    def compute(self) -> bool:
        """The one time that we have something computed. False: the step stands inside a compiled function."""
        made = [m for h in self.hearings for m in h.made]
        needed = [
            *self.losses,
            *self.held,
            *self.raw.values(),
            *(part.gradient for part in self.parts),
            *self.gradients.values(),
            *self.before.values(),
            *self.after.values(),
        ]
        known = evaluated([*needed, *(m.array for m in made), *(a for h in self.hearings for a in _given(h))])
        self.made = [m for m, is_known in zip(made, known[len(needed) :], strict=False) if is_known]
        return all(known[: len(needed)])

    def loss_bytes(self) -> int:
        """Of what the losses were made of, as far as that was heard."""
        outputs = [a for h in self.hearings for a in arrays_in((h.outputs, [(x.args, x.returned) for x in h.losses]))]
        return 4 * sum(a.nbytes for a in outputs)


def _given(hearing: Hearing) -> Iterator[mx.array]:
    for made in hearing.made:
        yield from made.given
    for heard in hearing.losses:
        yield from arrays_in((heard.args, list(heard.kwargs.values()), heard.returned))


def observations(look: Look, step: int, model: nn.Module, optimiser: int) -> Iterator[Observation]:
    """Of a look that is computed."""
    made = look.made
    yield from accumulation(look, step, optimiser)
    yield from activity(made, step)
    # Where the loss of the step is not known, nothing is said of it.
    calls = [call for h in look.hearings for call in heard_calls(h, look.losses[-1], made)] if look.losses else []
    yield from calls
    yield from _predictions(look, calls, step)
    yield from frames(look, step)
    bad = list(not_finite(look, step))
    yield from bad
    if bad and (origin := find_origin(look, made, step, model)) is not None:
        yield origin
    yield Precision(step, {m.path: dtype_name(m.array) for m in made})


def frames(look: Look, step: int) -> Iterator[Frame]:
    for role, arrays in ((Role.GRADIENT, look.gradients), (Role.WEIGHT, look.before), (Role.UPDATE, _changes(look))):
        if arrays:
            yield Frame(step, role, tuple(arrays), kernel.measure([values(a) for a in arrays.values()]))


def _changes(look: Look) -> dict[str, np.ndarray]:
    both = (path for path in look.before if path in look.after)
    with np.errstate(invalid="ignore", over="ignore"):
        return {path: values(look.after[path]) - values(look.before[path]) for path in both}


def not_finite(look: Look, step: int) -> Iterator[NotFinite]:
    for loss in look.losses:
        array = values(loss)
        if not np.isfinite(array).all():
            yield NotFinite(step, "loss", nans=int(np.isnan(array).sum()), infs=int(np.isinf(array).sum()))
            break
    for path, gradient in look.gradients.items():
        array = values(gradient)
        if not np.isfinite(array).all():
            yield NotFinite(step, "gradient", path, int(np.isnan(array).sum()), int(np.isinf(array).sum()))
            break


def _predictions(look: Look, calls: Sequence[LossCall], step: int) -> Iterator[Predictions]:
    """Where one loss takes one class a sample."""
    heard = [h for hearing in look.hearings for h in hearing.losses]
    if len(heard) != 1 or len(calls) != 1 or calls[0].family not in ("cross-entropy", "nll"):
        return
    arrays = [a for a in (*heard[0].args, *heard[0].kwargs.values()) if is_array(a)]
    if len(arrays) < 2 or arrays[0].ndim != 2 or arrays[1].ndim != 1:
        return
    named, right = values(arrays[0]).argmax(-1), values(arrays[1]).astype(np.int64)
    yield Predictions(
        step, Split.TRAIN, arrays[0].shape[-1], counted(named), counted(right), int((named == right).sum()), calls[0].location
    )


def counted(classes: np.ndarray) -> Mapping[int, int]:
    return dict(Counter(classes.tolist()))
