"""A step of a hand-written loop as observations. Off the training thread."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from sleuth import kernel
from sleuth.adapters.common.manual_loop.calls import phases
from sleuth.adapters.common.manual_loop.loss_and_predictions import Judged, loss_calls, predictions
from sleuth.adapters.common.manual_loop.made_values import MadeValues
from sleuth.adapters.common.manual_loop.notes import TakenStep, told_part
from sleuth.adapters.listening.steps import build_step
from sleuth.core.observation import Accumulation, Frame, Observation, Part, Role
from sleuth.core.observation.calls import CallKind


def observations(taken: TakenStep, inside: Iterable[Observation] = ()) -> Iterator[Observation]:
    notes, step = taken.notes, taken.step
    yield from phases(taken.heard, step)
    gradients = None
    if notes.looked:
        yield from inside
        yield from loss_calls(notes.judged, taken.loss, MadeValues(notes.made))
        yield from predictions(notes.judged, step)
        gradients = frame(step, Role.GRADIENT, notes.gradients)
        weights = frame(step, Role.WEIGHT, notes.before or taken.after)
        yield from (f for f in (gradients, weights, frame(step, Role.UPDATE, _updates(taken))) if f is not None)
        yield from _accumulation(taken)
    yield build_step(
        step,
        taken.loss,
        lr=taken.lr,
        gradients=None if gradients is None else gradients.table,
        calls=(*taken.heard.names, taken.kind),
        counts={str(kind): count for kind, count in taken.heard.counts.items()},
        training=taken.training,
        seconds=taken.seconds,
        phases=taken.waited,
        unusual=taken.unusual,
    )


def _updates(taken: TakenStep) -> dict[str, np.ndarray]:
    after = taken.after
    with np.errstate(all="ignore"):
        return {k: after[k] - v for k, v in taken.notes.before.items() if k in after and after[k].shape == v.shape}


def _accumulation(taken: TakenStep) -> Iterator[Accumulation]:
    """Several backwards of one step."""
    notes, parts = taken.notes, len(taken.notes.losses)
    if parts < 2:
        return
    divided = taken.divided
    told = []
    for values, scale, judged in zip(notes.losses, notes.scales, _each(notes.judged, parts), strict=False):
        returned = told_part(values)
        value = None if returned is None or scale is None or divided is None else returned * scale / divided
        target = judged.target if judged is not None else None
        about = () if target is None or not target.size else (float(target.min()), float(target.max()), float(target.mean()))
        calls = list(loss_calls([judged], None, MadeValues([]))) if judged is not None else []
        reduction = calls[0].reduction if calls else None
        name, place = (judged.name, judged.location) if judged is not None else ("", None)
        told.append(Part(value, returned if value is not None else None, name, reduction, about, place))
    yield Accumulation(taken.step, tuple(told), taken.heard.counts.get(CallKind.FORWARD, 0), touched=divided is None)


def _each(judged: list[Judged], parts: int) -> list[Judged | None]:
    return list(judged) if len(judged) == parts else [None] * parts


def frame(step: int, role: Role, arrays: Mapping[str, np.ndarray]) -> Frame | None:
    return Frame(step, role, tuple(arrays), kernel.measure(list(arrays.values()))) if arrays else None
