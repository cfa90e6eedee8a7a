"""How much work the compiler shall spend on a program: small ones are compiled in far more time than they ever run."""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

# The emitters of fusions take XLA as long as all the rest of it, for code that is no faster; several parts at a time take more
# of the processor than one.
CAREFUL = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
# Without optimisation a program is compiled in a fifth of that, for code that takes a few times as long.
HASTY = {**CAREFUL, "xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
# Such code loses about a nanosecond for each number that a program puts out, and as much for each product of a convolution.
# A training of some hundred steps, or a few dozen looks, must not lose more by that than compilation has saved.
MOST = {"gradients": 250_000, "apply": 250_000} | dict.fromkeys(("forward", "loss", "judged", "values", "heard"), 4_000_000)
# In double precision derivatives are compared, and nothing is trained.
MOST_WIDE = 4_000_000


def options_for(name: Any, jaxpr: Any, *, wide: bool) -> dict[str, Any]:
    """What is compiled to be timed is compiled as the user's own step would be."""
    what = name[0] if isinstance(name, tuple) else name
    if what not in MOST:
        return {}
    return HASTY if numbers_made(jaxpr) <= (MOST_WIDE if wide else MOST[what]) else CAREFUL


def executable(lowered: Any, options: dict[str, Any]) -> Any:
    if options:
        with suppress(Exception):  # a compiler that does not know these options
            return lowered.compile(compiler_options=options)
    return lowered.compile()


def numbers_made(jaxpr: Any) -> int:
    """That all its operations put out together, and the products of its convolutions."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [body for value in equation.params.values() for body in bodies(value)]
        if inner:
            total += int(equation.params.get("length", 1)) * sum(numbers_made(body) for body in inner)
            continue
        made = sum(math.prod(var.aval.shape) for var in equation.outvars if hasattr(var.aval, "shape"))
        total += made
        if equation.primitive.name == "conv_general_dilated":
            kernel = equation.invars[1].aval.shape
            total += made * math.prod(kernel) // max(kernel)
    return total


def bodies(value: Any) -> Iterator[Any]:
    """Of loops, branches and calls."""
    if hasattr(value, "eqns"):
        yield value
    elif hasattr(value, "jaxpr"):
        yield from bodies(value.jaxpr)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from bodies(each)
