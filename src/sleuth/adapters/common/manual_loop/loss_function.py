"""A loss that is a function of output and target, and its gradient by the output, however the user's code tells it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import Offers, call, takes_nothing
from sleuth.adapters.common.manual_loop.output_gradients import closed_form
from sleuth.core.errors import Unsupported
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users
from sleuth.core.subject import Parts

# Central differences ask for the loss twice per output: beyond this a step would take longer than a training.
MOST_OUTPUTS = 4096
# The cube root of float64's rounding balances the two errors of a central difference.
NUDGE = float(np.cbrt(np.finfo(np.float64).eps))

Forward = Callable[[Any], Any]


class NotOneNumber(ValueError):
    """A loss that is not a single number."""


@dataclass(frozen=True)
class Call:
    """One evaluation: what the loss gave, and the output where the loss was handed one."""

    returned: Any
    output: Any = None

    @property
    def value(self) -> Any:
        return self.returned[0] if isinstance(self.returned, tuple) and self.returned else self.returned


class LossFunction:
    """`loss(output, target)`: returns a number, or a number and its gradient by the output."""

    def __init__(self, forward: Forward, loss: Any) -> None:
        self.forward, self.loss = forward, loss

    def evaluate(self, batch: Parts) -> Call:
        output = self.forward(batch.inputs)
        return Call(self.ask(output, batch.target), output)

    def written(self) -> Any:
        return self.loss

    def location(self) -> Location | None:
        """Where that function begins."""
        return written_at(self.loss)

    def ask(self, output: Any, target: Any) -> Any:
        return (self.loss if callable(self.loss) else self.loss.forward)(output, target)

    def output_gradient(self, made: Call, batch: Parts) -> Any:
        returned = made.returned
        if isinstance(returned, tuple) and len(returned) > 1 and _fits(returned[1], made.output):
            return returned[1]
        for name in ("gradient", "backward", "grad", "derivative"):
            method = getattr(self.loss, name, None)
            if callable(method):
                offers: Offers = {"output": lambda: made.output, "target": lambda: batch.target}
                return call(method, offers, () if takes_nothing(method) else ("output", "target"))
        return self._differences(made.output, batch.target)

    def _differences(self, output: Any, target: Any) -> np.ndarray:
        if not isinstance(output, np.ndarray) or output.size > MOST_OUTPUTS:
            what = f"{output.size} outputs" if isinstance(output, np.ndarray) else f"an output of type {type(output).__name__}"
            raise Unsupported(f"the loss does not give its gradient, and {what} cannot be differenced: return (loss, gradient)")
        known = closed_form(lambda at: one_number(Call(self.ask(at, target)).value), output, target)
        if known is not None:
            return known
        point = output.astype(np.float64)
        gradient = np.empty(point.size)
        flat = point.reshape(-1)
        for i, centre in enumerate(flat.copy()):
            step = NUDGE * max(1.0, abs(centre))
            values = []
            for flat[i] in (centre + step, centre - step):
                values.append(one_number(Call(self.ask(point, target)).value))
            flat[i] = centre
            gradient[i] = (values[0] - values[1]) / (2 * step)
        return gradient.reshape(output.shape).astype(output.dtype)


def written_at(thing: Any) -> Location | None:
    """Where a function or the method of an object begins, in the user's own code."""
    ways = (thing, getattr(type(thing), "__call__", None), getattr(thing, "forward", None))  # noqa: B004
    code = next((c for way in ways if (c := getattr(way, "__code__", None)) is not None), None)
    return locate(code.co_filename, code.co_firstlineno) if code and is_users(code.co_filename) else None


def one_number(value: Any) -> float:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        got = f"shape {array.shape}" if array.dtype.kind in "fiub" else f"a {type(value).__name__}"
        raise NotOneNumber(f"the loss is not one number but has {got}; average it: loss.mean()")
    return float(array.reshape(()))


def _fits(gradient: Any, output: Any) -> bool:
    if isinstance(output, np.ndarray):
        return isinstance(gradient, np.ndarray) and gradient.size == output.size
    return not isinstance(gradient, str | int | float)
