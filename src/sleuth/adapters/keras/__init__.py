"""Keras 3 on its torch and jax backends."""

from sleuth.adapters.keras import compat as compat
from sleuth.adapters.keras.adapter import KerasAdapter

ADAPTER = KerasAdapter()
