"""A model in float16 under Adam, whose squares of gradients vanish there; and in float32, computing in bfloat16."""

import jax.numpy as jnp
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, {"param_dtype": jnp.float16})


def healthy(kit: Kit) -> Training:
    return _training(kit, {"dtype": jnp.bfloat16})


def _training(kit: Kit, kinds: dict) -> Training:
    model = nnx.Sequential(nnx.Linear(64, 64, **kinds, rngs=kit.rngs), nnx.tanh, nnx.Linear(64, 10, **kinds, rngs=kit.rngs))
    x, y = digits()
    x = x.astype(kinds.get("param_dtype", x.dtype))
    subject = Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
    return Training(subject, steps=400, options={"every": 10})
