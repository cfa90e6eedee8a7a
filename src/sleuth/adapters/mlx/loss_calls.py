"""What a loss was given and what it said: those of mlx.nn.losses are heard, any other is known by its values."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.common.axis_sums import axis_sums, exp_sums
from sleuth.adapters.common.loss_family import recognise
from sleuth.adapters.common.loss_values import array_facts, broadcast_of, family_of_name
from sleuth.adapters.mlx.activity import computed
from sleuth.adapters.mlx.arrays import arrays_in, is_any_array, is_array, values
from sleuth.adapters.mlx.pass_listener import LOSSES, HeardLoss, Hearing, Made
from sleuth.core.location import Location
from sleuth.core.observation import Argument, LossCall

FAMILIES = {
    "cross_entropy": "cross-entropy",
    "nll_loss": "nll",
    "mse_loss": "mse",
    "l1_loss": "l1",
    "huber_loss": "huber",
    "smooth_l1_loss": "huber",
    "kl_div_loss": "kl",
    "hinge_loss": "hinge",
}
OUTPUTS = ("logits", "inputs", "predictions")
SIGNATURES = {name: inspect.signature(getattr(nn.losses, name)) for name in LOSSES if hasattr(nn.losses, name)}
# What a mean or a sum may differ by from the loss of the step.
SAME = 1e-4


def heard_calls(losses: Sequence[HeardLoss], value: Any, made: Sequence[Made]) -> Iterator[LossCall]:
    """Of losses of MLX's own; `value` is the loss of the step, `made` what was computed on the way. All of it may be copies that
    are NumPy's."""
    whole = number_of(value)
    for heard in losses:
        bound = _bound(heard)
        output = next((bound[name] for name in OUTPUTS if is_any_array(bound.get(name))), None)
        target = bound.get("targets")
        if output is None or not is_any_array(target) or not is_any_array(heard.returned):
            continue
        returned = values(heard.returned)
        yield LossCall(
            name=heard.name,
            family=_family(heard.name, bound),
            value=whole,
            arguments=arguments(values(output), values(target), made),
            output_shape=returned.shape,
            reduction=_reduction(str(bound.get("reduction")), returned, whole),
            options=_options(bound),
            location=heard.location,
            broadcast_location=heard.location,
            returned=_mean(returned),
        )


def own_call(
    name: str,
    output: Any,
    target: Any,
    value: Any,
    hearing: Hearing,
    ask: Callable[[Any], Any] | None,
    place: Location | None,
    meets: Location | None = None,
) -> LossCall | None:
    """Of a loss that somebody else wrote. `meets`: where output and target go into one operation."""
    outputs, targets = arrays_in(output), arrays_in(target)
    if len(outputs) != 1 or len(targets) != 1:
        return None
    given, wanted, said = values(outputs[0]), values(targets[0]), np.asarray(values(value) if is_array(value) else value)
    family, reduction = recognise(given, wanted, said, None if ask is None else _asking(ask, outputs[0].dtype))
    return LossCall(
        name=name,
        family=family,
        value=number_of(value),
        arguments=arguments(given, wanted, computed(hearing.made)),
        output_shape=said.shape,
        broadcast=broadcast_of(given, wanted) if family in ("mse", "l1", "huber") else None,
        reduction=reduction,
        location=place,
        broadcast_location=meets or place,
        returned=_mean(said),
    )


def _asking(ask: Callable[[Any], Any], dtype: Any) -> Callable[[np.ndarray], np.ndarray]:
    return lambda output: values(ask(mx.array(output).astype(dtype)))


def arguments(output: np.ndarray, target: np.ndarray, made: Sequence[Made]) -> tuple[Argument, ...]:
    maker = _producer(output, made)
    behind = None if maker is None else _behind(maker, made)
    return (
        Argument(
            facts=array_facts("output", output),
            role="output",
            producer=maker.operation if maker else None,
            axis_sums=axis_sums(output),
            producer_location=maker.location if maker else None,
            producer_axis=maker.axis if maker else None,
            behind=behind,
            exp_sums=exp_sums(output),
            location=maker.location if maker else None,
        ),
        Argument(facts=array_facts("target", target), role="target", axis_sums=axis_sums(target), exp_sums=exp_sums(target)),
    )


def _producer(output: np.ndarray, made: Sequence[Made]) -> Made | None:
    """What made these values, whatever shape they were brought into since."""
    for one in reversed(made):
        if one.array.size == output.size and np.array_equal(values(one.array).reshape(-1), output.reshape(-1)):
            return _maker(one.array, made)
    return None


def _maker(array: mx.array, made: Sequence[Made]) -> Made | None:
    """The function, or the innermost layer, that returned it first: layers around it hand it on."""
    return next((m for m in made if m.array is array), None)


def _behind(maker: Made, made: Sequence[Made]) -> str | None:
    given = next((array for array in maker.given if array.size == maker.array.size), None)
    first = None if given is None else _maker(given, made)
    return None if first is None else first.operation


def number_of(value: Any) -> float | None:
    array = np.asarray(values(value) if is_array(value) else value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        return None
    number = float(array.reshape(()))
    return number if np.isfinite(number) else None


def _bound(heard: HeardLoss) -> dict[str, Any]:
    try:
        bound = SIGNATURES[heard.name].bind(*heard.args, **heard.kwargs)
    except TypeError:
        return {}
    bound.apply_defaults()
    return dict(bound.arguments)


def _family(name: str, bound: dict[str, Any]) -> str:
    if name == "binary_cross_entropy":
        return "bce-logits" if bound.get("with_logits") else "bce"
    return FAMILIES.get(name, "other")


def _options(bound: dict[str, Any]) -> dict[str, Any]:
    found = {k: v for k, v in bound.items() if isinstance(v, int | float | bool | str)}
    return found | ({"has_weight": True} if is_any_array(bound.get("weights")) else {})


def _reduction(said: str, returned: np.ndarray, whole: float | None) -> str | None:
    """`cross_entropy(…).mean()` is a mean, though the call itself reduced nothing."""
    if said != "none" or whole is None or not np.isfinite(returned).all():
        return said
    for word, reduced in (("mean", float(returned.mean())), ("sum", float(returned.sum()))):
        if abs(reduced - whole) <= SAME * max(abs(whole), 1e-6):
            return word
    return said


def _mean(array: np.ndarray) -> float | None:
    return float(array.mean()) if array.size and array.dtype.kind in "fiub" and np.isfinite(array).all() else None


def failed_call(name: str, hearing: Hearing, target: Any) -> Iterator[LossCall]:
    """The call of a loss that raised: only its name is left to go by, and only shapes are judged."""
    heard = hearing.refused
    bound = {} if heard is None else _bound(heard)
    outputs = arrays_in([bound.get(word) for word in OUTPUTS]) or arrays_in(hearing.outputs)
    targets = arrays_in(bound.get("targets")) or arrays_in(target)
    if outputs and targets:
        given = arguments(values(outputs[0]), values(targets[0]), ())
        family = family_of_name(name) if heard is None else _family(heard.name, bound)
        yield LossCall(name if heard is None else heard.name, family, None, given, failed=True)
