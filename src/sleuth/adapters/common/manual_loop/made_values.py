"""What layers and functions of a hand-written model returned, and which of them made an array."""

from dataclasses import dataclass

import numpy as np

from sleuth.adapters.common.axis_sums import axis_sums, exp_sums
from sleuth.adapters.common.loss_values import array_facts
from sleuth.core.location import Location
from sleuth.core.observation import Argument

# Reshapes and clips between a softmax and the loss keep its values.
CARRIED = 3


@dataclass(frozen=True)
class Made:
    """What a layer or a function returned; `values` are a copy, `array` is kept alive so that it can be recognised."""

    path: str
    family: str
    activation: str
    values: np.ndarray
    array: np.ndarray
    axis: int | None
    location: Location | None

    @property
    def operation(self) -> str:
        return self.activation or self.family


class MadeValues:
    def __init__(self, made: list[Made]) -> None:
        self.made = made

    def producer(self, array: np.ndarray) -> Made | None:
        """What made these values: the same array, or one that it is a view of."""
        for _ in range(CARRIED):
            for made in reversed(self.made):
                if made.array is array or (array.size == made.array.size and np.shares_memory(array, made.array)):
                    return made
            if not isinstance(array.base, np.ndarray):
                return None
            array = array.base
        return None

    def behind(self, made: Made) -> str | None:
        """What ran just before, in the order of the forward pass."""
        at = next(i for i, other in enumerate(self.made) if other is made)
        return self.made[at - 1].operation if at else None


def argument(role: str, array: np.ndarray, values: MadeValues, live: np.ndarray | None) -> Argument:
    """Of a loss. `live`: the very array that was given, by which its maker is known; `array` may be a copy."""
    maker = values.producer(live) if role == "output" and live is not None else None
    return Argument(
        facts=array_facts(role, array),
        role=role,
        producer=maker.operation if maker else None,
        axis_sums=axis_sums(array),
        producer_location=maker.location if maker else None,
        producer_axis=maker.axis if maker else None,
        behind=values.behind(maker) if maker else None,
        exp_sums=exp_sums(array),
    )
