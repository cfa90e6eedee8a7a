"""Values inside a model while a bench runs it: what layers and activations put out, and the gradients of the loss by that.

Inside a compiled function nothing can be heard, so what the bench was asked for is done once more, with the same weights and
the same random numbers, by a function that returns what was said inside it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from sleuth.adapters.jax.describing import layer_settings
from sleuth.adapters.jax.pass_listener import Spoken, listened
from sleuth.adapters.jax.words import ACTIVATIONS, PRIMITIVES, WHOLE, family_of
from sleuth.core.contract.adapter import Bench, LayerValues
from sleuth.core.contract.workload import Hear, Heard, Wanted
from sleuth.core.errors import Unsupported, UnusableInput

if TYPE_CHECKING:
    from sleuth.adapters.jax.bench import JaxBench
    from sleuth.adapters.jax.trace import Trace

NONE_HELD = "JAX keeps no gradients in a model: give data, sleuth.gradients(model, data, loss=criterion)."


class JaxLayerValues(LayerValues):
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        raise UnusableInput(NONE_HELD)

    @contextmanager
    def layer_values(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> Iterator[None]:
        from sleuth.adapters.jax.bench import JaxBench

        if not isinstance(bench, JaxBench):
            raise Unsupported("this bench does not hold a model of JAX")
        bench.listener = LayerListener(wanted, value, gradient, operations)
        try:
            yield
        finally:
            bench.listener = None


class LayerListener:
    def __init__(self, wanted: Wanted, value: Hear, gradient: Hear | None, operations: bool) -> None:
        self._wanted, self._value, self._gradient, self._operations = wanted, value, gradient, operations

    def listen(self, bench: "JaxBench", trace: "Trace", arrays: list[Any], *, backward: bool) -> None:
        given = (bench.params, bench.rest, arrays)
        slopes = backward and self._gradient is not None
        heard = self._names(trace, given)

        def run(*trees: Any) -> Any:
            flat = jax.tree.leaves(trees)
            if not slopes:
                return _once(trace, flat, [], self._is_heard(trace))[1], []
            zeros = [jnp.zeros(shape, kind) for _, shape, kind in heard]
            gradients, values = jax.grad(lambda z: _once(trace, flat, z, self._is_heard(trace)), has_aux=True)(zeros)
            return values, gradients

        key = ("heard", id(trace), slopes, tuple(what for what, _, _ in heard))
        values, gradients = bench.programs.run(key, run, *given)
        for (what, _, _), array in zip(heard, values, strict=True):
            self._value(what, array)
        if self._gradient is not None:
            # As they come back: the last first.
            for (what, _, kind), array in reversed(list(zip(heard, gradients, strict=bool(slopes)))):
                if jnp.issubdtype(kind, jnp.floating):
                    self._gradient(what, array)

    def _names(self, trace: "Trace", given: Any) -> list[tuple[Heard, tuple[int, ...], Any]]:
        """Who will speak, in order: found out without computing anything."""
        found: list[tuple[Heard, tuple[int, ...], Any]] = []
        hears = self._is_heard(trace, found)
        jax.eval_shape(lambda *trees: _once(trace, jax.tree.leaves(trees), [], hears)[0], *given)
        return found

    def _is_heard(self, trace: "Trace", found: list[Any] | None = None) -> Any:
        visits, calls = trace.marks.visits, Counter[str]()
        axes: dict[int, int] = {}  # of units, by the number of axes

        def hears(said: Spoken) -> bool:
            shape = tuple(said.value.shape)
            path, kind, activation, plain = _told(said, visits, self._operations)
            if path is None or not shape:
                return False
            axes[len(shape)] = axis = _unit_axis(said, visits, shape, axes)
            if not self._wanted(path, plain):
                return False
            calls[path] += 1
            name = path if calls[path] == 1 else f"{path}#{calls[path]}"
            if found is not None:
                found.append((Heard(name, kind, activation, axis), shape, said.value.dtype))
            return True

        return hears


def _told(said: Spoken, visits: list[Any], operations: bool) -> tuple[str | None, str, str, bool]:
    """(path, kind, activation, whether it is a layer without parts or an activation)."""
    if said.visit is not None:
        visit = visits[said.visit]
        if not visit.path or visit.module is None:
            return None, "", "", False
        activation = layer_settings(visit.module).get("activation", "")
        plain = not any(other.path.startswith(f"{visit.path}.") for other in visits)
        return visit.path, type(visit.module).__name__, activation, plain
    name = PRIMITIVES.get(said.name, said.name)
    activation = name if name in ACTIVATIONS else ""
    around = [visits[v] for v in said.around if visits[v].module is not None]
    whole = any(family_of(visit.module) in WHOLE for visit in around)
    if (whole and not operations) or not (activation or operations):
        return None, "", "", False
    layer = around[-1].path if around else ""
    return (f"{layer}.{name}" if layer else name), name, activation, bool(activation)


def _unit_axis(said: Spoken, visits: list[Any], shape: tuple[int, ...], axes: dict[int, int]) -> int:
    """Where the units stand; an operation leaves them where the layer before it had them."""
    from sleuth.adapters.jax.inspecting.maps import channel_axis

    if said.visit is not None and visits[said.visit].module is not None:
        return channel_axis(visits[said.visit].module, shape)
    return axes.get(len(shape), len(shape) - 1)


def _once(trace: "Trace", flat: list[Any], shifts: list[Any], is_heard: Any) -> tuple[Any, list[Any]]:
    """The loss, and what was heard; each heard value is moved by its shift, by which the gradient is taken."""
    values: list[Any] = []

    def hears(said: Spoken) -> Any:
        if not is_heard(said):
            return said.value
        values.append(said.value)
        moved = len(values) <= len(shifts) and jnp.issubdtype(said.value.dtype, jnp.floating)
        return said.value + shifts[len(values) - 1] if moved else said.value

    outputs = listened(trace.jaxpr, flat, hears)
    return (outputs[0] if outputs else jnp.zeros(())), values
