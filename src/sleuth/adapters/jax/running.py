"""Traced functions of the bench, compiled once for each shape of what they are given."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Programs that are the same to the compiler are compiled once, whoever asks: examining again after a small change is quick.
KEPT = 256
_executables: "OrderedDict[tuple[str, bool], Any]" = OrderedDict()
# To be compiled takes a small program a second and to run less than a thousandth of one. Those that run a few hundred times
# at most are compiled in a third of the time, for code that takes some five times as long.
HASTY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True, "xla_cpu_use_fusion_emitters": False}
RUN_SELDOM = ("values", "heard")


def precision(wide: bool) -> AbstractContextManager[Any]:
    return jax.enable_x64(True) if wide else nullcontext()


class Static:
    """What stands in a batch beside arrays; it is part of the program."""

    def __init__(self, tree: Any, leaves: tuple[Any, ...]) -> None:
        self.tree, self.leaves = tree, leaves

    @property
    def key(self) -> Hashable:
        return self.tree, tuple(repr(leaf) for leaf in self.leaves)


def parted(tree: Any, wide: bool) -> tuple[list[jax.Array], Static]:
    """The arrays of a batch, and all the rest of it."""
    flat, structure = jax.tree.flatten(tree)
    kept = tuple(None if is_data(leaf) else leaf for leaf in flat)
    return [_widened(leaf, wide) for leaf in flat if is_data(leaf)], Static(structure, kept)


def joined(arrays: list[Any], static: Static) -> Any:
    waiting = iter(arrays)
    return jax.tree.unflatten(static.tree, [next(waiting) if leaf is None else leaf for leaf in static.leaves])


def is_data(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) or (isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufcV")


def _widened(leaf: Any, wide: bool) -> jax.Array:
    array = leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf)
    return array.astype(jnp.float64) if wide and jnp.issubdtype(array.dtype, jnp.floating) else array


class Programs:
    def __init__(self, wide: bool) -> None:
        self._wide = wide
        self._made: dict[Hashable, tuple[Any, Any]] = {}

    def run(self, name: Hashable, function: Callable[..., Any], *given: Any) -> Any:
        """`function(*given)`, all of whose leaves are arrays; `name` stands for everything else that it depends on."""
        with precision(self._wide):
            executable, flat, out = self.ready(name, function, *given)
            return jax.tree.unflatten(out, executable(*flat))

    def ready(self, name: Hashable, function: Callable[..., Any], *given: Any) -> tuple[Any, list[Any], Any]:
        """The executable, what it is called with, and the tree that its results make."""
        with precision(self._wide):
            flat, tree = jax.tree.flatten(given)
            key = (name, tree, tuple([(leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in flat]))
            if key not in self._made:
                # In double precision derivatives are compared, and nothing is trained.
                hasty = self._wide or (isinstance(name, tuple) and name[0] in RUN_SELDOM)
                self._made[key] = _compiled(function, tree, flat, hasty=hasty)
            executable, out = self._made[key]
            return executable, flat, out


def _compiled(function: Callable[..., Any], tree: Any, flat: list[Any], *, hasty: bool) -> tuple[Any, Any]:
    structure: list[Any] = []

    def flattened(*leaves: Any) -> list[Any]:
        made, out = jax.tree.flatten(function(*jax.tree.unflatten(tree, leaves)))
        structure[:] = [out]
        return made

    traced = jax.jit(flattened).trace(*flat)
    lowered = traced.lower()
    # Arrays that the user's function closes over belong to this program alone.
    if traced.jaxpr.consts:
        return _executable(lowered, hasty=hasty), structure[0]
    text = hashlib.sha256(lowered.as_text().encode()).hexdigest(), hasty
    if text not in _executables:
        _executables[text] = _executable(lowered, hasty=hasty)
        if len(_executables) > KEPT:
            _executables.popitem(last=False)
    _executables.move_to_end(text)
    return _executables[text], structure[0]


def _executable(lowered: Any, *, hasty: bool) -> Any:
    if hasty:
        with suppress(Exception):  # a compiler that does not know these options
            return lowered.compile(compiler_options=HASTY)
    return lowered.compile()
