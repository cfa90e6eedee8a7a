"""What the instruments ask of a model of JAX: the modules beside this one answer."""

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.common.inspecting.by_module import InspectsByModule
from sleuth.adapters.jax.forms import form_of
from sleuth.adapters.jax.state import preserved
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class JaxInspects(InspectsByModule):
    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        arrays = jax.tree.leaves(form_of(model).params)
        own = arrays[0].dtype if arrays else jnp.float32
        try:
            wanted = jnp.dtype(own if dtype is None else dtype)
        except TypeError:
            raise UnusableInput(f"dtype={dtype!r} is not a type of JAX's; give one such as 'float32' or 'int32'.") from None
        if not jnp.issubdtype(wanted, jnp.floating):
            return jnp.zeros(shape, wanted)
        return jnp.asarray(np.random.default_rng(SEED).standard_normal(shape), wanted)

    def looking(self, source: Any) -> AbstractContextManager[None]:
        return preserved(Subject(None, source))
