"""What every framework's adapter says of schedules, and of dropout that drops nothing."""

import keras
import mlx.nn as mnn
import mlx.optimizers as optim
import optax
import pytest
from flax import nnx

import sleuth
from sleuth.adapters import adapter_for
from sleuth.adapters.jax.watching.modes import Switches
from sleuth.adapters.mlx.watching.modes import modes_of
from sleuth.testing import Kit
from tests.conftest import kits

PEAK = 3e-3


class Warming(keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return PEAK * keras.ops.minimum(1.0, (keras.ops.cast(step, "float32") + 1) / 80)


SCHEDULED = {
    "jax": lambda: optax.adam(optax.linear_schedule(1e-6, PEAK, 80)),
    "keras": lambda: keras.optimizers.Adam(Warming()),
    "mlx": lambda: optim.Adam(optim.linear_schedule(1e-6, PEAK, steps=80)),
}


@pytest.mark.parametrize("kit", [kit for kit in kits() if kit.name in SCHEDULED], ids=lambda kit: kit.name)
def test_a_warm_up_is_known_by_the_rate_that_it_rises_to(kit: Kit) -> None:
    """Else its first rate is tried, and held to be too low."""
    model = kit.mlp(4, 3, 2)
    settings = adapter_for(model).settings(sleuth.Subject(model, None, kit.loss("mse"), SCHEDULED[kit.name]()))
    assert settings.optimiser_options["initial_lr"] == pytest.approx(PEAK, rel=1e-5)


@pytest.mark.parametrize(("rate", "acting"), [(0.0, 0), (0.1, 1)])
def test_dropout_that_drops_nothing_has_no_mode(rate: float, acting: int) -> None:
    """Attention and transformers bring some along: a validation in training mode is no fault there."""
    model = nnx.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.Dropout(rate, rngs=nnx.Rngs(0)))
    assert len(Switches(model).paths) == acting
    assert len(modes_of(mnn.Sequential(mnn.Linear(2, 2), mnn.Dropout(rate)), 1, graph=False).active) == acting
