"""Which variables the loss reaches, on Keras' jax backend: where there is no path, JAX writes plain zeros."""

from typing import Any

import jax
import keras

from sleuth.adapters.keras.bench import KerasBench
from sleuth.adapters.keras.sides import other_variables, quiet
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection


def connection(bench: KerasBench, batch: Parts) -> Connection:
    native, free = bench.native(batch), list(bench.model.trainable_variables)
    others = other_variables(bench.model)

    def loss(values: Any) -> Any:
        mapping = [*zip(free, values, strict=True), *((v, v.value) for v in others)]
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True):
            return bench.compute(native)

    with quiet():
        program = jax.make_jaxpr(jax.grad(loss))([v.value for v in free]).jaxpr
    makers = {id(out): equation for equation in program.eqns for out in equation.outvars}
    cut = {id(v) for v, out in zip(free, program.outvars, strict=True) if _is_plain_zero(out, makers)}
    paths = {path: variable for path, variable in bench.held.items()}
    missing = tuple(path for path, variable in paths.items() if id(variable) in cut)
    # Whoever stops a gradient leaves no line of the user's behind in the program: the variables are told, the place is not.
    return Connection(len(paths), missing)


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
