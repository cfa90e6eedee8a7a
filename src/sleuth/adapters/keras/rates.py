"""The optimiser of a bench: made ready, its learning rate set, its weight decay scaled."""

from typing import Any

import keras

from sleuth.adapters.keras.describing import number, plain
from sleuth.core.errors import UnusableInput
from sleuth.core.words import kind_of

# Used only where there is no optimiser: it memorises a batch at almost any scale.
STAND_IN_LR = 1e-3


class ScaledSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of the user's, times a factor."""

    def __init__(self, plain: Any, factor: float) -> None:
        self.plain, self.factor = plain, factor

    def __call__(self, step: Any) -> Any:
        return self.plain(step) * self.factor

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor}


def scaled(optimiser: Any, lr: float) -> None:
    """From now on the rate is `lr`; a schedule goes on from there in its own proportions."""
    given = optimiser._learning_rate
    if isinstance(given, keras.Variable):
        given.assign(lr)
        return
    base = given.plain if isinstance(given, ScaledSchedule) else given
    now = number(base(optimiser.iterations) if _is_schedule(base) else base())
    if not _is_schedule(base):
        object.__setattr__(optimiser, "_learning_rate", lambda: lr)
    else:
        object.__setattr__(optimiser, "_learning_rate", ScaledSchedule(base, lr / now if now > 0 else 1.0))


def _is_schedule(rate: Any) -> bool:
    return isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)


def ready(optimiser: Any, model: Any) -> Any:
    """Built for the model; a stand-in where there is none."""
    if isinstance(optimiser, str):
        optimiser = keras.optimizers.get(optimiser)
    if optimiser is None:
        optimiser = keras.optimizers.Adam(STAND_IN_LR)
    if not isinstance(optimiser, keras.optimizers.Optimizer):
        raise UnusableInput(f"a {kind_of(optimiser)} is no optimiser of Keras; give one of keras.optimizers, or its name.")
    if not optimiser.built:
        optimiser.build(model.trainable_variables)
    return optimiser


def decay_of(optimiser: Any) -> float | None:
    decay = None if optimiser is None else optimiser.weight_decay
    return None if decay is None else plain(float(decay))


def scale_decay(optimiser: Any, factor: float) -> None:
    if optimiser is not None and optimiser.weight_decay is not None:
        optimiser.weight_decay = float(optimiser.weight_decay) * factor
