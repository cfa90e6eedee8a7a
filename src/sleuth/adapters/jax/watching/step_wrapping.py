"""`sleuth.watch_step(step)`: a step that was compiled already, in each of the ways that people compile."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import jax

from sleuth.adapters.jax.watching.executables import Compiled
from sleuth.adapters.listening.patches import carries_call
from sleuth.core.errors import UnusableInput

# Where Equinox and Flax NNX keep what jax.jit returned to them.
CACHED, JITTED = "_cached", "jitted_fn"


def listened(step: Callable[..., Any]) -> Callable[..., Any]:
    """The same step, such that it can be listened to. One that is not compiled as a whole is called as it is: what it computes is
    heard by itself."""
    if isinstance(step, Compiled):
        return step
    if is_compiled(step):
        return _compiled(step)
    if is_compiled(getattr(step, JITTED, None)):
        return Lent(step)
    if is_compiled(getattr(step, CACHED, None)):
        outer = copy.copy(step)
        object.__setattr__(outer, CACHED, _compiled(getattr(step, CACHED)))
        return outer
    if isinstance(step, functools.partial) and listened(step.func) is not step.func:
        return functools.partial(listened(step.func), *step.args, **step.keywords)
    if not callable(step):
        raise UnusableInput(f"a {type(step).__name__} is not a training step; give the function that is called for each batch.")
    return step


class Lent:
    """A step of NNX. It is known to its library by identity, so ours stands in it only while it is called."""

    def __init__(self, step: Any) -> None:
        functools.update_wrapper(self, step, updated=())
        self._step, self._plain = step, getattr(step, JITTED)
        self._ours = _compiled(self._plain)

    @carries_call
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        setattr(self._step, JITTED, self._ours)
        try:
            return self._step(*args, **kwargs)
        finally:
            setattr(self._step, JITTED, self._plain)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._step, name)


def is_compiled(thing: Any) -> bool:
    return type(thing).__name__ == "PjitFunction"


def _compiled(function: Any) -> Compiled:
    found = Compiled(function, function.__wrapped__, options_of(function))
    found.has_parts = True
    return found


def options_of(function: Any) -> dict[str, Any]:
    """What `jax.jit` was told. It keeps that to itself, so this may fail with another version of JAX."""
    info = getattr(function, "_jit_info", None)
    if info is None:
        raise UnusableInput(
            f"jax {jax.__version__} does not tell how this step was compiled; give the function itself, and jit what "
            "sleuth.watch_step returns, or use sleuth run."
        )
    names = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")
    options = {name: value for name in names if (value := getattr(info, name, None))}
    if getattr(info, "user_specified_in_shardings", False):
        options["in_shardings"] = jax.tree_util.tree_unflatten(info.in_shardings_treedef, info.in_shardings_leaves)
    if info.out_shardings_leaves and any("Unspecified" not in type(s).__name__ for s in info.out_shardings_leaves):
        options["out_shardings"] = jax.tree_util.tree_unflatten(info.out_shardings_treedef, info.out_shardings_leaves)
    return options
