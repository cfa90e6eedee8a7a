"""What can be looked at in a Keras model, on the torch backend; on jax the same is run by test_keras_on_jax.py."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import pytest

from tests.adapters.keras_looks import LOOKS


@pytest.mark.parametrize("look", LOOKS, ids=[look.__name__ for look in LOOKS])
def test_a_look_into_keras(look) -> None:
    look()
