"""Floating-point operations of an equation: a product and a sum are two, as torch counts them; products of matrices and
convolutions only."""

from math import prod
from typing import Any

from sleuth.adapters.jax.tape import OPENED


def flops(equation: Any) -> int | None:
    """None: it repeats something an unknown number of times."""
    name, params = equation.primitive.name, equation.params
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        left = equation.invars[0].aval.shape
        return 2 * prod(equation.outvars[0].aval.shape) * prod(left[axis] for axis in contracted)
    if name == "conv_general_dilated":
        kernel, (_, channels, *places) = equation.invars[1].aval.shape, params["dimension_numbers"].rhs_spec
        each = kernel[channels] * prod(kernel[axis] for axis in places)
        # A transposed convolution spreads its input out with zeros between: those are not multiplied.
        spread = prod(params["lhs_dilation"])
        return 2 * prod(equation.outvars[0].aval.shape) * each // spread
    if name == "scan":
        once = of_body(params["jaxpr"])
        return None if once is None else params["length"] * once
    if name == "cond":
        branches = [of_body(branch) for branch in params["branches"]]
        return None if None in branches else max(b for b in branches if b is not None)
    if name == "while":
        return None if of_body(params["body_jaxpr"]) != 0 else 0
    inner = params.get(OPENED.get(name, ""))
    return 0 if inner is None else of_body(inner)


def of_body(body: Any) -> int | None:
    each = [flops(equation) for equation in getattr(body, "jaxpr", body).eqns]
    return None if None in each else sum(n for n in each if n is not None)
