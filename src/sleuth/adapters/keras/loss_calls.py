"""What the losses of one listened step were given and what they said."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.common.axis_sums import axis_sums, exp_sums
from sleuth.adapters.common.loss_family import recognise
from sleuth.adapters.common.loss_values import array_facts
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.losses import BY_LOGITS, family_of, name_of
from sleuth.adapters.keras.pass_listener import HeardLoss, Hearing
from sleuth.adapters.keras.sides import Meeting
from sleuth.adapters.keras.user_lines import made_at
from sleuth.core.location import Location
from sleuth.core.observation import Argument, LossCall
from sleuth.core.runtime.tree import leaves

BROADCASTING = ("mse", "l1", "huber")
Ask = Callable[[Any], Any]


def heard_calls(hearing: Hearing, value: Any, compiled: Location | None = None) -> Iterator[LossCall]:
    """Every call of a loss of Keras', or of a function that was compiled as one. `value` is the loss of the step; None: nobody
    knows it, as where several are added up."""
    # Where a loss object was called, a function that is called beside it is a metric.
    own = [heard for heard in hearing.losses if not isinstance(heard.loss, str)]
    for heard in own or hearing.losses:
        outputs = [a for _, a in leaves(heard.output, backend.is_array)]
        truths = [a for _, a in leaves(heard.truth, backend.is_array)]
        if len(outputs) == 1 and len(truths) == 1:
            yield _call(heard, outputs[0], truths[0], hearing, value, compiled)


def _call(heard: HeardLoss, output: Any, truth: Any, hearing: Hearing, value: Any, compiled: Location | None) -> LossCall:
    if isinstance(heard.loss, str):
        name, options = heard.loss, heard.options
        family = BY_LOGITS[name][0 if options.get("from_logits") else 1]
    else:
        name = name_of(heard.loss)
        family, options = family_of(heard.loss)
    reduction = getattr(heard.loss, "reduction", None)
    given, wanted = backend.values(output), backend.values(truth)
    if family == "other" and heard.returned is not None and not isinstance(heard.loss, str):
        family, _ = recognise(given, wanted, backend.values(heard.returned), _asking(heard.loss, wanted))
    place = heard.location or compiled
    returned = None if heard.returned is None else backend.values(heard.returned)
    return LossCall(
        name=name,
        family=family,
        value=number_of(value) if value is not None else None if returned is None else _mean(returned),
        arguments=arguments(output, truth, hearing),
        output_shape=() if returned is None else returned.shape,
        broadcast=_blown(given.shape, wanted.shape) if family in BROADCASTING else None,
        reduction={"sum_over_batch_size": "mean"}.get(str(reduction), reduction),
        options={**options, **heard.options},
        location=place,
        broadcast_location=place,
        returned=None if returned is None else _mean(returned),
        failed=heard.returned is None,
        made_location=made_at(heard.loss) or compiled if not isinstance(heard.loss, str) else compiled,
    )


def _asking(loss: Any, truth: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda point: backend.values(loss(backend.native(truth), backend.native(point)))


def one_of_each(output: Any, target: Any) -> tuple[Any, Any] | None:
    """The arrays, where each side is one."""
    outputs = [a for _, a in leaves(output, backend.is_array)]
    targets = [a for _, a in leaves(target, backend.is_array)]
    return (outputs[0], targets[0]) if len(outputs) == len(targets) == 1 else None


def own_call(name: str, output: Any, target: Any, value: Any, hearing: Hearing, ask: Ask | None) -> LossCall:
    """Of a loss that somebody else wrote: known by its values."""
    given, wanted = backend.values(output), backend.values(target)
    said = np.asarray(backend.values(value) if backend.is_array(value) else value)
    asked = None if ask is None else (lambda point: backend.values(ask(backend.native(point))))
    shape = wanted.shape if given.shape == (*wanted.shape, 1) else given.shape
    family, reduction = recognise(given, wanted, said, asked)
    return LossCall(
        name=name,
        family=family,
        value=number_of(value),
        arguments=arguments(output, target, hearing),
        output_shape=said.shape,
        broadcast=_blown(given.shape, wanted.shape, squeezes=False) if family in BROADCASTING and shape == given.shape else None,
        reduction=reduction,
        returned=_mean(said),
    )


def met_at(call: LossCall, meeting: Meeting) -> LossCall:
    """Output and target are told as they were where they met. Which loss this is made into, nobody can tell."""
    output, target = (
        replace(argument, facts=replace(argument.facts, shape=shape))
        for argument, shape in zip(call.arguments, (meeting.output, meeting.target), strict=True)
    )
    place = meeting.location
    return replace(
        call, family="other", arguments=(output, target), broadcast=meeting.shape, location=place, broadcast_location=place
    )


def _blown(output: tuple[int, ...], target: tuple[int, ...], squeezes: bool = True) -> tuple[int, ...] | None:
    """The shape that both become together, where that is larger than either. Keras' losses bring (N,) to (N, 1) themselves."""
    if squeezes and abs(len(output) - len(target)) == 1:
        longer, shorter = sorted((output, target), key=len, reverse=True)
        if longer[-1] == 1 and longer[:-1] == shorter:
            return None
    try:
        shape = np.broadcast_shapes(output, target)
    except ValueError:
        return None
    return shape if np.prod(shape) > max(np.prod(output), np.prod(target)) else None


def arguments(output: Any, target: Any, hearing: Hearing) -> tuple[Argument, ...]:
    maker = hearing.maker(output)
    behind = next((m for a in maker.given if (m := hearing.maker(a)) is not None), None) if maker is not None else None
    given, wanted = backend.values(output), backend.values(target)
    return (
        Argument(
            facts=array_facts("output", given),
            role="output",
            producer=maker.operation if maker else None,
            axis_sums=axis_sums(given),
            producer_location=maker.location if maker else None,
            producer_axis=maker.axis if maker else None,
            behind=behind.operation if behind else None,
            exp_sums=exp_sums(given),
            location=maker.location if maker else None,
        ),
        Argument(facts=array_facts("target", wanted), role="target", axis_sums=axis_sums(wanted), exp_sums=exp_sums(wanted)),
    )


def number_of(value: Any) -> float | None:
    array = np.asarray(backend.values(value) if backend.is_array(value) else value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        return None
    number = float(array.reshape(()))
    return number if np.isfinite(number) else None


def _mean(array: np.ndarray) -> float | None:
    return float(array.mean()) if array.size and array.dtype.kind in "fiub" and np.isfinite(array).all() else None
