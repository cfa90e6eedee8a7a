"""Trainings that look ill and are well, watched to their end: nothing is said about them, not even a hint.

But one: they are short so that tests are, and where the loss was still falling when they ended, that may be said.
"""

from collections.abc import Callable

import pytest

from sleuth.testing import Loop
from tests.confounders import healthy
from tests.watched import watched

FOUND = healthy()


@pytest.mark.long
@pytest.mark.parametrize("build", [builder for *_, builder in FOUND], ids=[f"{topic}-{name}" for topic, name, _ in FOUND])
def test_a_training_that_only_looks_ill_is_not_accused(build: Callable[[], Loop]) -> None:
    report = watched(build())
    assert not [f for f in report.findings if f.name != "stopped-too-early"], report.to_text()
    assert not report.notes, report.notes
    assert report.status == "healthy", report.to_text()
