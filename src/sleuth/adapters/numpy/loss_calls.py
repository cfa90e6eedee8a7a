"""What a hand-written loss was given and what it said."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.adapters.common.loss_family import normalises_over_batch, recognise
from sleuth.adapters.common.loss_values import broadcast_of, family_of_name
from sleuth.adapters.common.manual_loop.loss_function import Call
from sleuth.adapters.common.manual_loop.made_values import argument
from sleuth.adapters.numpy.array_lines import Births, place
from sleuth.adapters.numpy.losses import GivenLoss, Loss
from sleuth.adapters.numpy.pass_listener import Listener, is_array
from sleuth.core.location import Location
from sleuth.core.observation import Argument, LossCall
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts


def loss_calls(name: str, loss: Loss, made: Call, batch: Parts, listener: Listener) -> Iterator[LossCall]:
    output = made.output if loss.sees_output else next(iter(listener.outputs), None)
    target = batch.target
    family, reduction = "other", None
    broadcast, over_batch = None, False
    if isinstance(output, np.ndarray) and isinstance(target, np.ndarray):
        ask = (lambda o: Call(loss.ask(o, target)).value) if isinstance(loss, GivenLoss) else None
        family, reduction = recognise(output, target, made.value, ask)
        broadcast = broadcast_of(output, target) if family in ("mse", "l1", "huber") else None
        over_batch = family == "other" and ask is not None and normalises_over_batch(output, target, ask)
    value = np.asarray(made.value)
    number = float(value.reshape(())) if value.size == 1 and value.dtype.kind in "fiub" else None
    number = number if number is not None and np.isfinite(number) else None
    yield LossCall(
        name=name,
        family=family,
        value=number,
        arguments=_with_line(_arguments(output, target, listener), lambda: loss.forward(batch.inputs), output),
        output_shape=tuple(value.shape),
        broadcast=broadcast,
        reduction=reduction,
        over_batch=over_batch,
        over_batch_location=_softmax_line(lambda: loss.ask(output, target), output)
        if over_batch and isinstance(loss, GivenLoss) and isinstance(output, np.ndarray)
        else None,
        location=(written := loss.location()),
        broadcast_location=written,
        returned=float(value.mean()) if value.size and value.dtype.kind in "fiub" and np.isfinite(value).all() else None,
    )


def _with_line(arguments: tuple[Argument, ...], forward: Callable[[], Any], output: Any) -> tuple[Argument, ...]:
    """A softmax over the samples that is written in line: which line it is."""
    return tuple(
        replace(a, producer_location=_softmax_line(forward, output))
        if a.role == "output" and a.producer is None and isinstance(output, np.ndarray) and _over_samples(output)
        else a
        for a in arguments
    )


def _softmax_line(act: Callable[[], Any], output: np.ndarray) -> Location | None:
    births = Births()
    births.follow(act)
    return place(births.first(output.shape, _over_samples))


def _over_samples(values: np.ndarray) -> bool:
    """Shares of one whole, counted over the first axis and not over the second."""
    if values.ndim != 2 or min(values.shape) < 2 or values.dtype.kind != "f" or not np.isfinite(values).all() or values.min() < 0:
        return False
    return bool(np.allclose(values.sum(0), 1, rtol=0, atol=1e-5) and not np.allclose(values.sum(1), 1, rtol=0, atol=1e-3))


def failed_call(name: str, listener: Listener, batch: Parts) -> LossCall:
    """The call of a loss that raised."""
    output = next(iter(listener.outputs), None)
    return LossCall(name, family_of_name(name), None, _arguments(output, batch.target, listener), failed=True)


def _arguments(output: Any, target: Any, listener: Listener) -> tuple[Argument, ...]:
    sides = (("output", output), ("target", target))
    return tuple(argument(role, array, listener, array) for role, tree in sides for _, array in leaves(tree, is_array))
