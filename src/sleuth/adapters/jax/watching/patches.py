"""What stands in JAX's place, in optax's and in Equinox's, while somebody listens."""

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from sleuth.adapters.jax.watching.executables import Compiled
from sleuth.adapters.jax.watching.hearing import make_apply_updates, make_grad, make_value_and_grad, make_vjp
from sleuth.core.importing import forget, when_imported

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.hub import Hub

UPDATING = ("optax", "equinox")
# They compile training steps of their own, and are listened to by adapters of their own.
FOREIGN = ("keras", "sleuth")


# Not public: without it, functions that value_and_grad made before the watch are not heard.
INSIDE: Any = sys.modules.get("jax._src.api")


class Patches:
    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._undo: list[Callable[[], None]] = []
        self._waiting: list[Any] = []

    def open(self) -> None:
        if self._undo:
            return
        both = jax.value_and_grad
        self._replace(jax, "grad", make_grad(jax.grad, both, self._hub))
        self._replace(jax, "value_and_grad", make_value_and_grad(both, self._hub))
        self._replace(jax, "jit", make_jit(jax.jit))
        if INSIDE is not None and hasattr(INSIDE, "vjp"):
            self._replace(INSIDE, "vjp", make_vjp(INSIDE.vjp, self._hub))
        for name in UPDATING:
            self._waiting.append(when_imported(name, functools.partial(self._update, name)))

    def close(self) -> None:
        while self._waiting:
            if (waiting := self._waiting.pop()) is not None:
                forget(waiting)
        while self._undo:
            self._undo.pop()()

    def _update(self, name: str) -> None:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "apply_updates"):
            self._replace(module, "apply_updates", make_apply_updates(module.apply_updates, self._hub))

    def _replace(self, module: Any, name: str, ours: Any) -> None:
        plain = getattr(module, name)

        def undo() -> None:
            if getattr(module, name) is ours:  # else somebody has put something of their own around it
                setattr(module, name, plain)

        setattr(module, name, ours)
        self._undo.append(undo)


def make_jit(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def jit(fun: Any = None, /, **options: Any) -> Any:
        if fun is None:
            return functools.partial(jit, **options)
        compiled = plain(fun, **options)
        if (getattr(fun, "__module__", None) or "").split(".")[0] in FOREIGN:
            return compiled
        return Compiled(compiled, fun, options)

    return jit
