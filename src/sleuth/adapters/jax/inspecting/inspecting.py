"""Looking at a model of JAX: each method is filled in by the module of that name, imported where it is called."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.jax.forms import form_of
from sleuth.adapters.jax.state import preserved
from sleuth.core.contract.adapter import Attends, Credits, Inspects, Routes, Shows
from sleuth.core.contract.inspection import AttentionMap, ClassActivation, Kernels, Maps, Part, Passage, Route
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class JaxInspects(Inspects, Routes, Shows, Credits, Attends):
    def parts(self, model: Any) -> tuple[Part, ...]:
        from sleuth.adapters.jax.inspecting.parts import parts

        return parts(model)

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

    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        from sleuth.adapters.jax.inspecting.forward_pass import passage

        return passage(model, inputs, timed=time, as_is=as_is)

    def route(self, model: Any, inputs: Any) -> Route:
        from sleuth.adapters.jax.inspecting.operation_graph import route

        return route(model, inputs)

    def kernels(self, model: Any, layer: str | None) -> Kernels:
        from sleuth.adapters.jax.inspecting.pictures import kernels

        return kernels(model, layer)

    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        from sleuth.adapters.jax.inspecting.pictures import maps

        return maps(model, inputs, layers)

    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        from sleuth.adapters.jax.inspecting.class_activation import class_activation

        return class_activation(model, inputs, layer, target)

    def attention(self, model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
        from sleuth.adapters.jax.inspecting.attention import attention

        return attention(model, inputs)
