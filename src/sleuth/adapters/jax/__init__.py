"""Flax NNX, Equinox and plain functions of JAX."""

from sleuth.adapters.jax import compat as compat
from sleuth.adapters.jax.adapter import JaxAdapter

ADAPTER = JaxAdapter()
