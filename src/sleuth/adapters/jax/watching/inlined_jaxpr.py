"""A traced function whose inner calls of compiled functions are written out. What has a derivative of its own stays a call."""

from typing import Any

from jax.extend.core import ClosedJaxpr, Literal, Var

from sleuth.adapters.jax.tape import known_function
from sleuth.core.runtime.place import is_users

COMPILED = ("jit", "pjit", "closed_call", "core_call")
INNER = ("jaxpr", "call_jaxpr")


def laid_open(closed: Any) -> Any:
    """The same function without constants: they become its first inputs."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = {}
    equations = list(_opened(jaxpr, env))
    outvars = [_atom(env, var) for var in jaxpr.outvars]
    return closed_of(jaxpr, [*jaxpr.constvars, *jaxpr.invars], equations, outvars)


def closed_of(jaxpr: Any, inputs: list[Any], equations: list[Any], outputs: list[Any]) -> Any:
    info = jaxpr.debug_info
    names = None if info is None else info._replace(arg_names=None, result_paths=None)
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=inputs, eqns=equations, outvars=outputs, debug_info=names), consts=[])


def _opened(jaxpr: Any, env: dict[Any, Any], around: Any = None) -> Any:
    """`around`: the traceback of the call that it stands in."""
    for equation in jaxpr.eqns:
        if around is not None and not _tells_where(equation.source_info.traceback):
            equation = equation.replace(source_info=equation.source_info.replace(traceback=around))
        inputs = [_atom(env, var) for var in equation.invars]
        inner = _inner(equation)
        if inner is None:
            made = [var if _is_dropped(var) else Var(var.aval) for var in equation.outvars]
            env.update({old: new for old, new in zip(equation.outvars, made, strict=True) if not _is_dropped(old)})
            yield equation.replace(invars=inputs, outvars=made)
            continue
        within = dict(zip(inner.invars, inputs, strict=True))
        yield from _opened(inner, within, equation.source_info.traceback)
        for var, result in zip(equation.outvars, inner.outvars, strict=True):
            env[var] = _atom(within, result)


def _tells_where(traceback: Any) -> bool:
    """A function that JAX has compiled before is no part of the user's line any more; a known one is told by its own name."""
    frames = () if traceback is None else traceback.frames
    return any(is_users(frame.file_name) or known_function(frame.function_name) for frame in frames)


def _inner(equation: Any) -> Any:
    """Constants of its own would have to be inputs: then it stays closed."""
    if equation.primitive.name not in COMPILED:
        return None
    found = next((equation.params[word] for word in INNER if word in equation.params), None)
    body = getattr(found, "jaxpr", found)
    return None if body is None or body.constvars else body


def _atom(env: dict[Any, Any], var: Any) -> Any:
    return var if isinstance(var, Literal) else env.get(var, var)


def _is_dropped(var: Any) -> bool:
    return type(var).__name__ == "DropVar"
