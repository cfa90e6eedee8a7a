"""What one listened pass says about the signal: a Frame of all activations and Units of the activations."""

from collections.abc import Iterator, Sequence

from sleuth.adapters.common.activity import frame_of, units_of
from sleuth.adapters.mlx.arrays import evaluated, values
from sleuth.adapters.mlx.pass_listener import Made
from sleuth.core.observation import Absent, Observation, Units

NO_ACTIVATION = "no layer and no function that the model calls is known as an activation (nn.relu, mx.tanh, …)"


def computed(made: Sequence[Made]) -> list[Made]:
    """Those that have values: what is made inside a compiled function has none."""
    return [m for m, known in zip(made, evaluated(m.array for m in made), strict=True) if known]


def activity(made: Sequence[Made], step: int) -> Iterator[Observation]:
    """Of passes that are computed. Features stand last in MLX, those of images too."""
    yield from frame_of(step, [(m.path, values(m.array)) for m in made])
    found = [m for m in made if m.activation and m.family == "activation" and m.array.ndim >= 2]
    yield from (units_of(step, m.path, m.activation, values(m.array)) for m in found)
    if made and not found:
        yield Absent(Units, NO_ACTIVATION)
