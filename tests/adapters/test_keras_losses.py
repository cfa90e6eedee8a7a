"""Losses of the user's own in Keras, on the torch backend; on jax the same is run by test_keras_on_jax.py."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import pytest

from tests.adapters.keras_losses import LOSSES


@pytest.mark.parametrize("ask", LOSSES, ids=[ask.__name__ for ask in LOSSES])
def test_a_loss_that_somebody_has_written(ask) -> None:
    ask()
