"""What all trials are."""

from dataclasses import dataclass

from sleuth.core.observation import Observation


@dataclass(frozen=True)
class Trial(Observation):
    """Abstract: the result of one experiment."""
