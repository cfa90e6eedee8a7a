"""Setting the learning rate of an optimiser of Keras'."""

from typing import Any

import keras

from sleuth.adapters.keras.describing import number


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
