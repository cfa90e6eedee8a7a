"""For authors of adapters and checks: the kit protocol of the cases, and the conformance suite."""

from sleuth.testing.cases import Case, Loop, Training, discover
from sleuth.testing.kit import CannotBuild, Elsewhere, Kit

__all__ = ["CannotBuild", "Case", "Elsewhere", "Kit", "Loop", "Training", "discover"]
