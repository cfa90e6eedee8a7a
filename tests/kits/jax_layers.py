"""Layers of the cases that Flax NNX does not bring along, or brings with the channels last."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


class Conv2d(nnx.Module):
    """On images whose channels come first, as the cases' data have them."""

    def __init__(self, inputs: int, outputs: int, kernel: int, padding: int = 0, *, rngs: nnx.Rngs) -> None:
        pads = [(padding, padding)] * 2
        self.conv = nnx.Conv(inputs, outputs, (kernel, kernel), padding=pads, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.moveaxis(self.conv(jnp.moveaxis(x, 1, -1)), -1, 1)


class BatchNorm2d(nnx.Module):
    def __init__(self, features: int, *, rngs: nnx.Rngs) -> None:
        self.norm = nnx.BatchNorm(features, momentum=0.9, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.moveaxis(self.norm(jnp.moveaxis(x, 1, -1)), -1, 1)


class Offset(nnx.Module):
    def __init__(self, *shape: int) -> None:
        self.offset = nnx.Param(jnp.zeros(shape))

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.offset[...]


class Waves(nnx.Module):
    def __init__(self, inputs: int, outputs: int, frequency: float, *, rngs: nnx.Rngs) -> None:
        self.directions = nnx.Variable(jax.random.normal(rngs.params(), (inputs, outputs)) * frequency)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.sin(x @ self.directions[...])


@jax.custom_vjp
def right_tanh(x: jax.Array) -> jax.Array:
    return jnp.tanh(x)


right_tanh.defvjp(lambda x: (y := jnp.tanh(x), y), lambda y, gradient: (gradient * (1 - y**2),))


@jax.custom_vjp
def wrong_tanh(x: jax.Array) -> jax.Array:
    return jnp.tanh(x)


wrong_tanh.defvjp(lambda x: (y := jnp.tanh(x), y), lambda y, gradient: (gradient * (1 + y**2),))


def standardise(axis: int) -> Callable[[jax.Array], jax.Array]:
    def standardised(x: jax.Array) -> jax.Array:
        return (x - x.mean(axis, keepdims=True)) / jnp.sqrt(x.var(axis, keepdims=True) + 1e-5)

    return standardised


def max_pool(kernel: int) -> Callable[[jax.Array], jax.Array]:
    def pooled(x: jax.Array) -> jax.Array:
        moved = jnp.moveaxis(x, 1, -1)
        return jnp.moveaxis(nnx.max_pool(moved, (kernel, kernel), strides=(kernel, kernel)), -1, 1)

    return pooled


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "flatten": lambda: lambda x: x.reshape(len(x), -1),
    "softmax": lambda axis: lambda x: nnx.softmax(x, axis),
    "log_softmax": lambda axis: lambda x: nnx.log_softmax(x, axis),
    "reshape": lambda *shape: lambda x: x.reshape(shape),
    "log": lambda offset: lambda x: jnp.log(x + offset),
    "mean": lambda axis: lambda x: x.mean(axis),
    "standardise": standardise,
    "max_pool": max_pool,
    "tanh_by_hand": lambda right: right_tanh if right else wrong_tanh,
}
LAYERS: dict[str, Callable[..., Any]] = {
    "conv2d": Conv2d,
    "batchnorm": lambda features, rngs: nnx.BatchNorm(features, momentum=0.9, rngs=rngs),
    "batchnorm2d": BatchNorm2d,
    "layernorm": nnx.LayerNorm,
    "dropout": nnx.Dropout,
    "embedding": nnx.Embed,
    "waves": Waves,
}
