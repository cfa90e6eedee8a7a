"""Rows are brought to length one by a function of NumPy: it is called back once for each row, or once for all."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def length(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows, axis=-1, keepdims=True).astype(np.float32)


class UnitLength(nnx.Module):
    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, x):
        def by_numpy(row):
            return jax.pure_callback(
                length, jax.ShapeDtypeStruct((1,), jnp.float32), jax.lax.stop_gradient(row), vmap_method=self.how
            )

        return 8 * x / jax.vmap(by_numpy)(x)


def sick(kit: Kit) -> Subject:
    return _subject(kit, "sequential")


def healthy(kit: Kit) -> Subject:
    return _subject(kit, "broadcast_all")


def _subject(kit: Kit, how: str) -> Subject:
    model = kit.sequential(kit.linear(64, 64), UnitLength(how), kit.activation("relu"), kit.linear(64, 10))
    loader = kit.loader(*digits(), batch_size=64)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))
