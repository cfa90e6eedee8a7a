"""The order in which experts work, and how bad, how sure a finding is."""

from enum import Enum


class Ordered(Enum):
    """Members compare by where they stand in the class: earlier is smaller."""

    @property
    def rank(self) -> int:
        return list(type(self)).index(self)

    def __lt__(self, other: "Ordered") -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.rank < other.rank


class Stage(Ordered):
    DATA = "data"
    MODEL = "model"
    BATCH = "batch"
    TRAINING = "training"
    HYPERPARAMETERS = "hyperparameters"
    RESOURCES = "resources"
    CONSISTENCY = "consistency"

    @property
    def letter(self) -> str:
        """The first letter of every code of this stage."""
        return self.name[0]

    @property
    def title(self) -> str:
        return "One batch" if self is Stage.BATCH else self.value.capitalize()


class Severity(Ordered):
    """Worst first."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Confidence(Ordered):
    """Surest first. CERTAIN is only for what was directly observed."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"
