"""What a loss was given and what it said. Which loss it is, its values tell, or the function of optax that was called."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.common.axis_sums import axis_sums, exp_sums
from sleuth.adapters.common.loss_family import recognise
from sleuth.adapters.jax.arrays import array_facts, is_array, to_numpy
from sleuth.adapters.jax.operations import Made, Operations
from sleuth.adapters.jax.running import precision
from sleuth.adapters.jax.source_lines import function_line
from sleuth.adapters.jax.trace import Trace
from sleuth.adapters.jax.words import LOSSES
from sleuth.core.location import Location, locate
from sleuth.core.observation import Argument, LossCall
from sleuth.core.runtime.place import is_users
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts

if TYPE_CHECKING:
    from sleuth.adapters.jax.bench import JaxBench

# Operations that move values without making new ones: the producer is looked for behind them.
CARRIERS = ("reshape", "dropout")
CLAMPS = ("clamp", "max", "min", "jit", "name")
BROADCASTING = ("mse", "l1", "huber")


def loss_calls(bench: "JaxBench", batch: Parts, trace: Trace, found: Operations, values: dict[int, Any]) -> Iterator[LossCall]:
    value = to_numpy(values[trace.value]) if isinstance(trace.value, int) else np.asarray(getattr(trace.value, "value", np.nan))
    number = float(value.reshape(())) if value.size == 1 and np.isfinite(value).all() else None
    outputs = trace.outputs()
    output = values[outputs[0]] if len(outputs) == 1 else None
    target = batch.target if is_array(batch.target) else None
    heard = _heard(found)
    family, reduction, as_it_is = "other", None, True
    if output is not None and target is not None:
        family, reduction, as_it_is = _recognised(bench, output, target, value)
    if family == "other" and len(heard) == 1:
        family, reduction = LOSSES[heard[0].operation.name], reduction
    sides = [("output", slot, values[slot]) for slot in outputs]
    arguments = [_argument(role, array, slot, found) for role, slot, array in sides]
    arguments += [_argument("target", array, None, found) for _, array in leaves(batch.target, is_array)]
    place = _location(bench, heard) if heard else _compared_at(trace, outputs) or _location(bench, heard)
    yield LossCall(
        name=heard[0].operation.name if len(heard) == 1 else _name(bench),
        family=family,
        value=number,
        arguments=tuple(arguments),
        broadcast=_broadcast(output, target) if family in BROADCASTING and as_it_is else None,
        reduction=reduction,
        location=place,
        broadcast_location=place,
        returned=number,
    )


def failed_call(bench: "JaxBench", batch: Parts, error: Exception) -> LossCall:
    """The call of a loss that raised: the output is computed again without it."""
    try:
        made = [a for _, a in leaves(bench.forward(batch.inputs), is_array)]
    except Exception:  # then there is none to show
        made = []
    sides = [("output", a) for a in made] + [("target", a) for _, a in leaves(batch.target, is_array)]
    arguments = tuple(Argument(array_facts(role, a), role) for role, a in sides)
    return LossCall(_name(bench), "other", None, arguments, failed=True, location=_location(bench, []))


def _heard(found: Operations) -> list[Made]:
    return [m for m in found.made if m.operation.family == "loss"]


def _recognised(bench: "JaxBench", output: Any, target: Any, value: Any) -> tuple[str, str | None, bool]:
    """Family and reduction; and whether the loss compares the two as they are, or brings them into one shape first."""
    program = bench.program
    ask: Callable[[np.ndarray], Any] | None = None
    if program.sees_output and program.loss is not None:

        def ask(point: np.ndarray) -> Any:
            with precision(bench.wide):
                return to_numpy(bench.judged(point.astype(output.dtype).reshape(output.shape), target))

    known, wanted = to_numpy(output), to_numpy(target)
    if known.dtype.kind != "f" or not known.size:
        return "other", None, True
    # A function may drop the last axis of the output itself, or give the target one.
    shapes = [known.shape, wanted.shape] if known.shape == (*wanted.shape, 1) else [known.shape]
    for shape in shapes:
        family, reduction = recognise(known.astype(np.float32).reshape(shape), wanted, value, ask)
        if family != "other":
            return family, reduction, shape == known.shape
    return "other", None, True


def _argument(role: str, array: Any, slot: int | None, found: Operations) -> Argument:
    maker = producer(found, slot)
    behind = None if maker is None else producer(found, maker.given[0] if maker.given else None)
    values = to_numpy(array)
    return Argument(
        facts=array_facts(role, array),
        role=role,
        producer=None if maker is None else word(maker),
        axis_sums=axis_sums(values),
        producer_location=None if maker is None else function_line(word(maker), maker.operation.location),
        producer_axis=None
        if maker is None
        else maker.operation.settings.get("axis")
        if maker.operation.family == "softmax"
        else None,
        behind=None if behind is None else word(behind),
        exp_sums=exp_sums(values),
    )


def producer(found: Operations, slot: int | None) -> Made | None:
    while slot is not None:
        at = found.maker(slot)
        if at is None:
            return None
        made = found.made[at]
        if made.operation.family not in CARRIERS and made.operation.name not in CLAMPS:
            return made
        slot = made.given[0] if made.given else None
    return None


def word(made: Made) -> str:
    return made.activation or (made.operation.family if made.operation.family in ("linear", "conv") else made.operation.name)


def _broadcast(output: Any, target: Any) -> tuple[int, ...] | None:
    try:
        shape = np.broadcast_shapes(output.shape, target.shape)
    except ValueError:
        return None
    return shape if np.prod(shape) > max(output.size, target.size) else None


def _name(bench: "JaxBench") -> str:
    thing = bench.subject.loss or bench.subject.step
    return getattr(thing, "__name__", type(thing).__name__)


def _compared_at(trace: Trace, outputs: list[int]) -> Location | None:
    """The first line of the user's own that does something with the answers."""
    known = set(outputs)
    for entry in trace.tape.entries:
        taken = {trace.real(atom) for atom in entry.inputs if isinstance(atom, int)}
        if entry.name == "name" or taken.isdisjoint(known) or known & set(entry.outputs):
            continue
        if entry.location is not None:
            return entry.location
        known |= set(entry.outputs)
    return None


def _location(bench: "JaxBench", heard: list[Made]) -> Location | None:
    """Where the loss was called from, or where the user's own begins."""
    place = next((m.operation.location for m in heard if m.operation.location is not None), None)
    thing = bench.subject.loss or bench.subject.step
    code = getattr(thing, "__code__", None) or getattr(getattr(type(thing), "__call__", None), "__code__", None)  # noqa: B004
    if place is None and code is not None and is_users(code.co_filename):
        place = locate(code.co_filename, code.co_firstlineno)
    return place
