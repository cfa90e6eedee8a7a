"""For authors of adapters and checks: the kit protocol of the cases, and the conformance suite."""

from sleuth.testing.cases import Case, discover, suited
from sleuth.testing.kit import CannotBuild, Elsewhere, Kit
from sleuth.testing.trainings import Loop, Training

__all__ = ["CannotBuild", "Case", "Elsewhere", "Kit", "Loop", "Training", "discover", "suited"]
