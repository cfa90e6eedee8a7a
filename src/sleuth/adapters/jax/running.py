"""Traced functions of the bench, compiled once for each shape of what they are given."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.jax.arrays import is_key
from sleuth.adapters.jax.compile_effort import executable, options_for

# Programs that are the same to the compiler are compiled once, whoever asks: examining again after a small change is quick.
KEPT = 256
_executables: "OrderedDict[tuple[str, tuple[str, ...]], Any]" = OrderedDict()


def precision(wide: bool) -> AbstractContextManager[Any]:
    return jax.enable_x64(True) if wide else nullcontext()


class Static:
    """What stands in a batch beside arrays; it is part of the program."""

    def __init__(self, tree: Any, leaves: tuple[Any, ...]) -> None:
        self.tree, self.leaves = tree, leaves

    @property
    def key(self) -> Hashable:
        return self.tree, tuple(repr(leaf) for leaf in self.leaves)


def parted(tree: Any, wide: bool) -> tuple[list[Any], Static]:
    """The arrays of a batch, and all the rest of it."""
    flat, structure = jax.tree.flatten(tree)
    kept = tuple(None if is_data(leaf) else leaf for leaf in flat)
    return [on_host(leaf, wide) for leaf in flat if is_data(leaf)], Static(structure, kept)


def joined(arrays: list[Any], static: Static) -> Any:
    waiting = iter(arrays)
    return jax.tree.unflatten(static.tree, [next(waiting) if leaf is None else leaf for leaf in static.leaves])


def is_data(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) or (isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufcV")


def on_host(leaf: Any, wide: bool) -> Any:
    """As a program takes it, without an operation of JAX: outside of programs each is compiled by itself, for every shape, and
    `jnp.asarray` is one."""
    if isinstance(leaf, jax.Array):
        return widened(leaf) if wide else leaf
    values = np.asarray(leaf)
    kind = np.dtype(np.float64) if wide and _is_float(values) else jax.dtypes.canonicalize_dtype(values.dtype)
    return values if values.dtype == kind else values.astype(kind)


def as_array(leaf: Any, wide: bool) -> jax.Array:
    """As an array of JAX, which shares no memory with anybody's."""
    if isinstance(leaf, np.ndarray | np.generic):
        return jax.device_put(np.array(on_host(leaf, wide)))
    array = leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf)
    return widened(array) if wide else array


def widened(array: jax.Array) -> jax.Array:
    if not _is_float(array) or array.dtype == np.float64:
        return array
    return jax.device_put(np.asarray(array).astype(np.float64), array.sharding if array.committed else None)


def _is_float(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


class Programs:
    def __init__(self, wide: bool) -> None:
        self._wide = wide
        self._made: dict[Hashable, tuple[Any, Any]] = {}

    def run(self, name: Hashable, function: Callable[..., Any], *given: Any) -> Any:
        """`function(*given)`, all of whose leaves are arrays; `name` stands for everything else that it depends on."""
        with precision(self._wide):
            compiled, flat, out = self.ready(name, function, *given)
            return jax.tree.unflatten(out, compiled(*flat))

    def ready(self, name: Hashable, function: Callable[..., Any], *given: Any) -> tuple[Any, list[Any], Any]:
        """The executable, what it is called with, and the tree that its results make."""
        with precision(self._wide):
            flat, tree = jax.tree.flatten(given)
            key = (name, tree, tuple([(leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in flat]))
            if key not in self._made:
                self._made[key] = _compiled(name, function, tree, flat, wide=self._wide)
            compiled, out = self._made[key]
            return compiled, flat, out


def _compiled(name: Hashable, function: Callable[..., Any], tree: Any, flat: list[Any], *, wide: bool) -> tuple[Any, Any]:
    structure: list[Any] = []

    def flattened(*leaves: Any) -> list[Any]:
        made, out = jax.tree.flatten(function(*jax.tree.unflatten(tree, leaves)))
        structure[:] = [out]
        return made

    # A program that leaves out what it does not use is the same text whichever argument that is.
    traced = jax.jit(flattened, keep_unused=True).trace(*flat)
    lowered = traced.lower()
    options = options_for(name, traced.jaxpr.jaxpr, wide=wide)
    digest = hashlib.sha256(lowered.as_text().encode())
    try:
        for constant in traced.jaxpr.consts:  # arrays that the user's function closes over
            digest.update(np.asarray(jax.random.key_data(constant) if is_key(constant) else constant).tobytes())
    except Exception:  # something that has no values to compare: this program is nobody else's
        return executable(lowered, options), structure[0]
    text = digest.hexdigest(), tuple(options)
    if text not in _executables:
        _executables[text] = executable(lowered, options)
        if len(_executables) > KEPT:
            _executables.popitem(last=False)
    _executables.move_to_end(text)
    return _executables[text], structure[0]
