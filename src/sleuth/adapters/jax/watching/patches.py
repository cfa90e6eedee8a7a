"""The functions of JAX, optax, Flax NNX and Equinox that are patched while somebody listens."""

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from sleuth.adapters.jax.watching.created_at import make_init, make_maker, makers_in
from sleuth.adapters.jax.watching.executables import Compiled
from sleuth.adapters.jax.watching.gradient_patches import make_apply_updates, make_grad, make_value_and_grad, make_vjp
from sleuth.adapters.jax.watching.layer_places import make_construction, make_value_construction
from sleuth.adapters.jax.watching.modes import SWITCHES, make_switch
from sleuth.adapters.jax.watching.optimiser_states import make_field, make_traced_field
from sleuth.adapters.jax.watching.scanning import make_scan
from sleuth.adapters.listening.patches import Make, Patch, attempt
from sleuth.core.runtime.importing import forget, when_imported

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
        self._patches: list[Patch] = []
        self._waiting: list[Any] = []

    def open(self) -> None:
        if self._patches:
            return
        hub, both = self._hub, jax.value_and_grad
        self._replace(jax, "grad", lambda plain: make_grad(plain, both, hub))
        self._replace(jax, "value_and_grad", lambda plain: make_value_and_grad(plain, hub))
        self._replace(jax, "jit", lambda plain: make_jit(plain, hub))
        self._replace(jax.lax, "scan", make_scan)
        if INSIDE is not None and hasattr(INSIDE, "vjp"):
            self._replace(INSIDE, "vjp", lambda plain: make_vjp(plain, hub))
        for name in UPDATING:
            self._when(name, functools.partial(self._update, name))
        self._when("optax", self._makers)
        self._when("flax.nnx", self._models)
        self._when("equinox", self._values)

    def close(self) -> None:
        while self._waiting:
            if (waiting := self._waiting.pop()) is not None:
                forget(waiting)
        while self._patches:
            self._patches.pop().remove()
        Patch.remove_covered()

    def _when(self, name: str, act: Callable[[], None]) -> None:
        # In the middle of an import of the user's.
        self._waiting.append(when_imported(name, functools.partial(attempt, self._hub.failed, act)))

    def _update(self, name: str) -> None:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "apply_updates"):
            self._replace(module, "apply_updates", lambda plain: make_apply_updates(plain, self._hub))

    def _makers(self) -> None:
        module = sys.modules.get("optax")
        for name in () if module is None else makers_in(module):
            self._replace(module, name, lambda plain: make_maker(plain, self._hub.unlocated))
        kind = getattr(module, "GradientTransformation", None)
        if kind is not None and hasattr(kind, "init"):
            self._replace(kind, "init", lambda plain: make_field(plain, self._hub.state_begun, self._hub.unlocated))
            self._replace(kind, "update", lambda plain: make_traced_field(plain, self._hub.unlocated))

    def _models(self) -> None:
        kind = getattr(sys.modules.get("flax.nnx"), "Optimizer", None)
        if kind is not None:
            self._replace(kind, "__init__", lambda plain: make_init(plain, self._hub.unlocated))
            module = sys.modules["flax.nnx"].Module
            self._construct(module, "flax.", lambda plain: make_construction(plain, self._hub.unlocated))
            for name, kind_of_call in SWITCHES.items():
                self._replace(module, name, functools.partial(make_switch, kind_of_call, self._hub.unlocated))

    def _values(self) -> None:
        kind = getattr(sys.modules.get("equinox"), "Module", None)
        if kind is not None:
            self._construct(kind, "equinox.", lambda plain: make_value_construction(plain, self._hub.unlocated))

    def _construct(self, kind: Any, package: str, make: Make) -> None:
        classes = next((c for c in type(kind).__mro__ if "__call__" in vars(c) and c.__module__.startswith(package)), None)
        if classes is not None:
            self._replace(classes, "__call__", make)

    def _replace(self, owner: Any, name: str, make: Make) -> None:
        self._patches.append(Patch(owner, name, make))


def make_jit(plain: Callable[..., Any], hub: "Hub") -> Callable[..., Any]:
    def jit(fun: Any = None, /, **options: Any) -> Any:
        if fun is None:
            return functools.partial(jit, **options)
        compiled = plain(fun, **options)
        if (getattr(fun, "__module__", None) or "").split(".")[0] in FOREIGN:
            return compiled
        found = attempt(hub.failed, Compiled, compiled, fun, options)
        return compiled if found is None else found

    return jit
