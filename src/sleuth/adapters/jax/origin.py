"""In which operation NaN or Inf was born: the traced step is done again one operation at a time, each result looked at."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from sleuth.adapters.jax.layer_marks import Marks
from sleuth.adapters.jax.looking import Looking, plain
from sleuth.adapters.jax.running import joined, precision
from sleuth.adapters.jax.stable_words import told
from sleuth.adapters.jax.tape import Entry, Tape
from sleuth.adapters.jax.words import FUNCTIONS
from sleuth.core.observation import Origin
from sleuth.core.subject import Parts

if TYPE_CHECKING:
    from sleuth.adapters.jax.bench import JaxBench

# Where the user's line calls one of these, it is the operation, whatever single step of it broke; also for its gradient.
TOLD = {
    "log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "div", "pow", "norm", "std", "var", "mean", "softmax",
    "log_softmax", "acos", "asin", "cosh", "sinh", "rsqrt", "reciprocal", "logsumexp", "arctan2", "hypot", "square",
}  # fmt: skip


def find_origin(bench: "JaxBench", batch: Parts, step: int) -> Origin | None:
    """Forward first; if that is finite, the gradients."""
    arrays, static = bench.parted(bench.program.given(batch))
    flat, tree = jax.tree.flatten((bench.params, bench.rest, arrays))
    program, training = bench.program, bench.training
    for direction in ("forward", "backward"):
        marks = Marks()

        def run(*leaves: Any, marks: Marks = marks, direction: str = direction) -> Any:
            params, rest, given = jax.tree.unflatten(tree, leaves)
            batch = joined(given, static)
            if program.loss is None and program.step is None:
                return program.forward(params, rest, batch[0], training, marks)[0]

            def value(params: Any) -> Any:
                loss, output, _ = program.evaluate(params, rest, batch, training, marks)
                return loss, output

            return value(params) if direction == "forward" else jax.grad(value, has_aux=True)(params)[0]

        with precision(bench.wide):
            found = _walked(run, flat, marks, direction, step)
        if found is not None:
            return found
    return None


def _walked(run: Any, flat: list[Any], marks: Marks, direction: str, step: int) -> Origin | None:
    tape = Tape(jax.make_jaxpr(run)(*flat))
    return origin_on(tape, flat, marks, direction, step, tape.outputs)


def origin_on(tape: Tape, flat: list[Any], marks: Marks, direction: str, step: int, outputs: Sequence[Any]) -> Origin | None:
    """Of what is not finite among these outputs of the tape."""
    looking = Looking(tape)
    looking.given(flat)
    tape.evaluate(flat, looking.look)
    bad = looking.guilty([slot for slot in outputs if isinstance(slot, int)])
    if bad is None or bad.entry is None:
        return None
    entry = bad.entry
    layer = next((marks.visits[v].path for v in reversed(entry.visits) if marks.visits[v].path), None)
    origin = Origin(
        step,
        _operation(entry, direction),
        direction,
        layer,
        bad.ranges,
        entry.location,
        bad.nans,
        bad.infs,
        dtype=bad.dtype,
        constants=tuple(_constants(entry)),
        makers=looking.behind(entry),
        # Where layers are known by their calls, what none of them did is the loop's or the loss's.
        outside=not entry.visits and any(visit.module is not None for visit in marks.visits),
    )
    return told(origin)


def _operation(entry: Entry, direction: str) -> str:
    """As the user's line calls it: the gradient of a root is a quotient to JAX."""
    called = plain(entry.called)
    if called in TOLD or called in FUNCTIONS:
        return called
    text = entry.location.text if entry.location is not None else ""
    written = {plain(word) for word in re.findall(r"(\w+)\(", text)} & TOLD
    if direction == "backward" and len(written) == 1:
        return written.pop()
    return entry.function or plain(entry.name)


def _constants(entry: Entry) -> list[float]:
    if entry.name == "integer_pow":
        return [float(entry.equation.params["y"])]
    values = [a.value for a in entry.inputs if not isinstance(a, int)]
    return [float(v) for v in values if np.ndim(v) == 0 and np.asarray(v).dtype.kind in "fiu" and np.isfinite(float(v))]
