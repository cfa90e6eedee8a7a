"""Gradients and steps on Keras' jax backend: pure functions of the variables, compiled once per shape."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import keras

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.jax_pass_listener import IN_HASTE, Listened, followed
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.sides import Meeting, Side, assign, other_variables, without_warnings
from sleuth.core.contract.workload import Hear, Heard
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection

if TYPE_CHECKING:
    from sleuth.adapters.keras.bench import KerasBench


class JaxSide(Side):
    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._made: dict[Any, Any] = {}
        self._listened = Listened()

    def without_gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> Any:
        others = other_variables(self.model)
        run = self._function(("plain", key), lambda: self._pure(compute), given, IN_HASTE)
        output, states = run([v.value for v in self.model.trainable_variables], [v.value for v in others], given)
        assign(others, states)
        return output

    def gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> tuple[Any, list[Any]]:
        others = other_variables(self.model)
        run = self._function(("both", key), lambda: jax.value_and_grad(self._pure(compute), has_aux=True), given)
        (loss, states), found = run([v.value for v in self.model.trainable_variables], [v.value for v in others], given)
        assign(others, states)
        return loss, list(found)

    def listened(self, hearing: Hearing, compute: Callable[[Any], Any], given: Any, key: Any) -> Any:
        if not all(backend.is_array(leaf) for leaf in jax.tree_util.tree_leaves(given)):
            return super().listened(hearing, compute, given, key)
        free, others = self.model.trainable_variables, other_variables(self.model)
        pure = self._pure(compute)
        state = [v.value for v in free], [v.value for v in others], given
        try:
            output, states = self._listened.run(hearing, lambda parts: pure(*parts), state, key)
        except Exception:  # what cannot be traced, or fails: operation by operation it says more
            return super().listened(hearing, compute, given, key)
        assign(others, states)
        return output

    def meeting(self, compute: Callable[[Any, Any], Any], output: Any, target: Any) -> Meeting | None:
        from sleuth.adapters.keras.jax_broadcasting import meeting

        return meeting(compute, output, target)

    def connection(self, bench: "KerasBench", batch: Parts) -> Connection:
        """Where there is no path, JAX writes plain zeros."""
        native, free = bench.native(batch), list(bench.model.trainable_variables)
        others = other_variables(bench.model)

        def loss(values: Any) -> Any:
            mapping = [*zip(free, values, strict=True), *((v, v.value) for v in others)]
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True):
                return bench.compute(native)

        with without_warnings():
            program = jax.make_jaxpr(jax.grad(loss))([v.value for v in free]).jaxpr
        makers = {id(out): equation for equation in program.eqns for out in equation.outvars}
        cut = {id(v) for v, out in zip(free, program.outvars, strict=True) if _is_plain_zero(out, makers)}
        paths = {path: variable for path, variable in bench.held.items()}
        missing = tuple(path for path, variable in paths.items() if id(variable) in cut)
        # Whoever stops a gradient leaves no line of the user's behind in the program: the variables are told, the place is not.
        return Connection(len(paths), missing)

    def followed(self, compute: Callable[[Any], None], given: Any) -> None:
        try:
            followed(compute, given)
        except Exception:
            super().followed(compute, given)

    def apply(self, optimiser: Any, gradients: Sequence[Any]) -> None:
        variables = list(self.model.trainable_variables)
        key = ("apply", optimiser.weight_decay, id(optimiser._learning_rate))
        if key not in self._made:
            # A function of its own each time: JAX takes the same bound method for the same computation.
            self._made[key] = jax.jit(lambda *given: optimiser.stateless_apply(*given))
        new, states = self._made[key]([v.value for v in optimiser.variables], list(gradients), [v.value for v in variables])
        assign(variables, new)
        assign(optimiser.variables, states)

    def _pure(self, compute: Callable[[Any], Any]) -> Callable[..., Any]:
        free, others = list(self.model.trainable_variables), other_variables(self.model)

        def pure(values: Any, states: Any, given: Any) -> Any:
            mapping = [*zip(free, values, strict=True), *zip(others, states, strict=True)]
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
                output = compute(given)
                moved = [scope.get_current_value(v) for v in others]
            return output, moved

        return pure

    def _function(self, key: Any, make: Callable[[], Any], given: Any, options: dict[str, Any] | None = None) -> Any:
        if not all(backend.is_array(leaf) for leaf in jax.tree_util.tree_leaves(given)):
            return make()  # texts and objects ride along in the batch: they cannot be compiled
        if key not in self._made:
            self._made[key] = jax.jit(make(), compiler_options=options)
        return self._made[key]

    def gradient_by(self, compute: Callable[[Any], Any], given: Any) -> Any:
        def pure(array: Any) -> Any:
            with keras.StatelessScope(collect_losses=True):
                return compute(array)

        return jax.grad(pure)(given)

    @contextmanager
    def step_by_step(self) -> Iterator[None]:
        with jax.disable_jit():
            yield

    def told(self, heard: Heard, array: Any, value: Hear, gradient: Hear | None) -> Any:
        @jax.custom_vjp
        def same(x: Any) -> Any:
            value(heard, x)
            return x

        def forward(x: Any) -> Any:
            value(heard, x)
            return x, None

        def backward(_: Any, slope: Any) -> Any:
            if gradient is not None:
                gradient(heard, slope)
            return (slope,)

        same.defvjp(forward, backward)
        return same(array)

    @contextmanager
    def wide(self) -> Iterator[None]:
        with jax.enable_x64(True), super().wide():
            yield


def _is_plain_zero(out: Any, makers: dict[int, Any]) -> bool:
    """A number, or an array that is filled with one and depends on nothing."""
    while not hasattr(out, "val"):
        equation = makers.get(id(out))
        if equation is None or equation.primitive.name not in ("broadcast_in_dim", "convert_element_type", "mul", "pjit", "jit"):
            return False
        if equation.primitive.name in ("mul", "pjit", "jit") or not equation.invars:
            return False
        out = equation.invars[0]
    return float(out.val) == 0.0
