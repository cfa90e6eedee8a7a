"""Flax NNX, Equinox and plain functions of JAX."""

from sleuth.adapters.jax.adapter import JaxAdapter

ADAPTER = JaxAdapter()
