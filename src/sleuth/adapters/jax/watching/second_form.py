"""The second form of a step, for arguments of one kind: it returns statistics."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from sleuth.adapters.jax.watching.channel import Channel, Part
from sleuth.adapters.jax.watching.gradient_function import Learned
from sleuth.adapters.jax.watching.naming import leaves_of
from sleuth.adapters.jax.watching.step_inputs import count_among, order_of_use

# As JAX has it: by the time it is needed something of ours stands in its place.
JIT = jax.jit


@dataclass(frozen=True)
class SecondForm:
    jaxpr: Any
    dynamic: tuple[bool, ...]  # which leaves of the arguments are inputs of it; the others are static
    losses: list[int]  # among its outputs
    outputs: int  # of the user's own; behind them comes the channel
    parts: tuple[Part, ...]
    order: dict[Part, list[int]]
    look: Callable[[Any], Channel] | None  # None: it has effects, and must not be run beside the plain one
    learned: Learned | None = None  # the function that its first gradient is taken of
    passed: int = 0  # how many of its last outputs are what that was given
    count: int | None = None  # among its inputs: the optimiser's, of its steps

    def inputs(self, given: Any) -> list[Any]:
        leaves = jax.tree_util.tree_leaves(given)
        return [leaf for leaf, dynamic in zip(leaves, self.dynamic, strict=True) if dynamic]

    def counted(self, given: Any) -> Any:
        """As it is now: the step may take its memory."""
        return None if self.count is None else np.asarray(self.inputs(given)[self.count])


def second_form(traced: Any, dynamic: tuple[bool, ...]) -> SecondForm:
    """`traced`: the user's step with a channel behind its result."""
    output, channel = traced.out_info
    named = leaves_of(output)
    places = {part.loss for part in channel.parts}
    losses = [number for number, (path, _) in enumerate(named) if path in places]
    slots = [sum(dynamic[:number]) for number in range(len(dynamic))]
    order = {
        part: order_of_use(traced.jaxpr, [slots[place] for place in part.places], len(part.lane.names)) for part in channel.parts
    }
    passed = len(channel.passed)
    count = count_among(traced.jaxpr, len(named))
    form = SecondForm(traced.jaxpr, dynamic, losses, len(named), channel.parts, order, None, channel.learned, passed, count)
    return form if traced.jaxpr.effects else replace(form, look=_looking(form, channel))


def _looking(form: SecondForm, channel: Channel) -> Callable[[Any], Channel]:
    """Statistics alone. XLA leaves out what they do not need, and the user's own result comes from the plain executable: to the
    last bit what it would be."""
    run, tree = jaxpr_as_fun(form.jaxpr), jax.tree_util.tree_structure(replace(channel, passed=()))
    end = len(form.jaxpr.jaxpr.outvars) - form.passed
    # A count is copied: the step may take its memory.
    counts = [] if form.count is None else [form.count]
    alone = JIT(lambda *inputs: (run(*inputs)[form.outputs : end], [jnp.copy(inputs[place]) for place in counts]))

    def look(given: Any) -> Channel:
        told, count = alone(*form.inputs(given))
        return replace(jax.tree_util.tree_unflatten(tree, told), count=count[0] if count else None)

    return look
