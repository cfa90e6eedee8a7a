"""Healthy trainings of many kinds are silent under every check."""

import importlib
import pkgutil

import pytest

import tests.zoo
from sleuth import examine

NAMES = [m.name for m in pkgutil.iter_modules(tests.zoo.__path__) if m.name != "data"]


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_training_is_not_accused(name: str, record_property) -> None:
    subject = importlib.import_module(f"tests.zoo.{name}").build()
    report = examine(subject, budget_seconds=60, progress=False)
    record_property("variant", "zoo")
    record_property("examined", (len(report.stage_of) - len(report.not_examined), len(report.not_examined)))
    assert report.status == "healthy", report.to_text()
    assert not report.findings, report.to_text()
