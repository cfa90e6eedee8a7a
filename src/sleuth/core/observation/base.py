"""What all observations share."""

from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """Which tensors of a step a `Frame` describes. GRADIENT: parameter gradients as the step uses them."""

    INPUT = "input"
    ACTIVATION = "activation"
    GRADIENT = "gradient"
    WEIGHT = "weight"
    UPDATE = "update"


class Split(Enum):
    TRAIN = "train"
    VALIDATION = "validation"


@dataclass(frozen=True)
class Observation:
    """Abstract: every observation is one of the classes below or a `Trial`."""
