"""Adam at a rate that rewrites whole layers at each of the first steps, after which every tanh is pinned; and an ordinary one."""

from dataclasses import replace

from sleuth.testing import Kit, Training
from tests.cases.training import update_too_large as case

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _closely(case.sick(kit))


def healthy(kit: Kit) -> Training:
    return _closely(case.healthy(kit))


def _closely(training: Training) -> Training:
    """Keras starts with larger weights: what the first steps do to them shows at these steps only."""
    return replace(training, options={"every": 1})
