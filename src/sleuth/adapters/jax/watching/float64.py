"""A traced function in double precision. What was traced holds the precision that it was traced in, so it is done again, each
operation with numbers of twice the length."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, jaxpr_as_fun

WIDE = jnp.float64
# They name the precision of what they make.
NAMING = ("new_dtype", "preferred_element_type", "dtype")
# They take numbers apart into bits: what they are given and make stays as long as it was.
OF_BITS = ("bitcast_convert_type", "random_bits", "random_gamma", "nextafter")
INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}

Values = list[Any]


def widening(closed: Any) -> Callable[..., Values]:
    """The same function, in the precision of what it is given."""
    plain = jaxpr_as_fun(closed)

    def run(*given: Any) -> Values:
        wider = any(
            _is_float(v.aval) and a.dtype == WIDE != v.aval.dtype for v, a in zip(closed.jaxpr.invars, given, strict=True)
        )
        return _run(closed, [_widened(a) for a in given]) if wider else list(plain(*given))

    return run


def _run(closed: Any, given: Sequence[Any]) -> Values:
    jaxpr = getattr(closed, "jaxpr", closed)
    consts = [_widened(value) for value in getattr(closed, "consts", ())]
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, given, strict=True))

    def read(atom: Any) -> Any:
        return _literal(atom) if isinstance(atom, Literal) else env[atom]

    for equation in jaxpr.eqns:
        env.update(zip(equation.outvars, _made(equation, [read(atom) for atom in equation.invars]), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _made(equation: Any, taken: Values) -> Values:
    name, params = equation.primitive.name, equation.params
    if name in INLINED:
        return _run(params[INLINED[name]], taken)
    if name in LOOPS:
        return LOOPS[name](params, taken)
    if name.startswith("custom_vjp_call"):
        return list(_by_hand(equation)(*taken))
    if name == "custom_jvp_call":
        return list(_by_hand_forward(equation)(*taken))
    if name in OF_BITS:
        return [_widened(a) for a in _bound(equation, _narrowed(equation.invars, taken))]
    if name == "reduce_precision":
        return taken
    wide = {word: WIDE for word in NAMING if word in params and _names_float(params[word])}
    return [_widened(a) for a in _bound(equation, taken, wide)]


def _bound(equation: Any, taken: Values, changes: dict[str, Any] | None = None) -> Values:
    primitive = equation.primitive
    bound = primitive.get_bind_params({**equation.params, **(changes or {})})
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    made = primitive.bind(*functions, *taken, **params)
    return list(made) if primitive.multiple_results else [made]


def _by_hand(equation: Any) -> Callable[..., Any]:
    """The derivative that somebody wrote is asked in the precision that it was written for: a wrong one is wrong there, too."""
    inner = equation.params.get("call_jaxpr", equation.params.get("fun_jaxpr"))

    @jax.custom_vjp
    def call(*taken: Any) -> Any:
        return tuple(_run(inner, taken))

    def back(taken: Any, slopes: Any) -> Any:
        _, pull = jax.vjp(lambda *own: tuple(_bound(equation, list(own))), *_narrowed(equation.invars, taken))
        found = pull(tuple(_narrowed(equation.outvars, slopes)))
        return tuple(_widened(g) if _is_float(v.aval) else None for v, g in zip(equation.invars, found, strict=True))

    call.defvjp(lambda *taken: (call(*taken), taken), back)
    return call


def _by_hand_forward(equation: Any) -> Callable[..., Any]:
    @jax.custom_jvp
    def call(*taken: Any) -> Any:
        return tuple(_run(equation.params["call_jaxpr"], taken))

    @call.defjvp
    def _(taken: Any, moved: Any) -> Any:
        own, slopes = _narrowed(equation.invars, taken), _narrowed(equation.invars, moved)
        _, slopes = jax.jvp(lambda *given: tuple(_bound(equation, list(given))), own, slopes)
        return call(*taken), tuple(_widened(slope) for slope in slopes)

    return call


def _scan(params: Any, taken: Values) -> Values:
    fixed, carried = params["num_consts"], params["num_carry"]

    def body(carry: Any, row: Any) -> Any:
        made = _run(params["jaxpr"], [*taken[:fixed], *carry, *row])
        return made[:carried], made[carried:]

    begin, rows = taken[fixed : fixed + carried], taken[fixed + carried :]
    last, made = jax.lax.scan(body, begin, rows, length=params["length"], reverse=params["reverse"], unroll=params["unroll"])
    return [*last, *made]


def _while(params: Any, taken: Values) -> Values:
    asks, runs = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body, state = taken[:asks], taken[asks : asks + runs], taken[asks + runs :]

    def goes_on(now: Any) -> Any:
        return _run(params["cond_jaxpr"], [*of_test, *now])[0]

    def body(now: Any) -> Any:
        return _run(params["body_jaxpr"], [*of_body, *now])

    return list(jax.lax.while_loop(goes_on, body, state))


def _cond(params: Any, taken: Values) -> Values:
    branches = [lambda *given, branch=branch: _run(branch, given) for branch in params["branches"]]
    return list(jax.lax.switch(taken[0], branches, *taken[1:]))


LOOPS: dict[str, Callable[[Any, Values], Values]] = {"scan": _scan, "while": _while, "cond": _cond}


def _narrowed(variables: Sequence[Any], values: Sequence[Any]) -> Values:
    """As long as they were when it was traced."""
    return [a.astype(v.aval.dtype) if _is_float(v.aval) else a for v, a in zip(variables, values, strict=True)]


def _literal(atom: Any) -> Any:
    return _widened(jnp.asarray(atom.val, atom.aval.dtype))


def _widened(array: Any) -> Any:
    return jnp.asarray(array, WIDE) if _is_float(array) and array.dtype != WIDE else array


def _is_float(thing: Any) -> bool:
    dtype = getattr(thing, "dtype", None)
    return dtype is not None and bool(jnp.issubdtype(dtype, jnp.floating))


def _names_float(value: Any) -> bool:
    return value is not None and bool(jnp.issubdtype(value, jnp.floating))
