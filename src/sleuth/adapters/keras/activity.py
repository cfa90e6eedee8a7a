"""What one listened pass says about the signal: a Frame of all activations and Units of the activations."""

from collections.abc import Iterator, Sequence

from sleuth.adapters.common.activity import frame_of, units_of
from sleuth.adapters.keras.pass_listener import Made
from sleuth.core.observation import Absent, Observation, Units

NO_ACTIVATION = "no layer and no function that the model calls is known as an activation (relu, sigmoid, tanh, …)"


def activity(made: Sequence[Made], step: int) -> Iterator[Observation]:
    yield from frame_of(step, [(m.path, m.values) for m in made])
    found = [m for m in made if m.family == "activation" and m.activation and m.values.ndim >= 2]
    yield from (units_of(step, m.path, m.activation, m.values, m.unit_axis) for m in found)
    if made and not found:
        yield Absent(Units, NO_ACTIVATION)
