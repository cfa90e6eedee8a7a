"""Healthy trainings of many kinds are silent under every check, and not for want of looking."""

import importlib
import pkgutil

import pytest

import tests.zoo
from sleuth import examine
from sleuth.testing import Training
from tests.feeding import LEAST, share_examined
from tests.watched import watched

NAMES = [m.name for m in pkgutil.iter_modules(tests.zoo.__path__) if m.name != "data"]

# Of each family of models one is quick.
SLOW = ("transformer", "resnet", "gru", "vae", "causal_lm", "segmentation")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] if n in SLOW else []) for n in NAMES])
def test_a_healthy_training_is_not_accused(name: str, record_property) -> None:
    subject = importlib.import_module(f"tests.zoo.{name}").build()
    report = examine(subject, budget_seconds=60, progress=False)
    examined, fed = share_examined(report, subject)
    record_property("variant", "zoo")
    record_property("examined", (examined, fed - examined))
    assert report.status == "healthy", report.to_text()
    assert not report.findings, report.to_text()
    assert examined >= LEAST * fed, f"{examined} of {fed} examined: {dict(report.not_examined)}"


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_training_is_not_accused_while_it_runs(name: str, record_property) -> None:
    """Three hundred steps under watch. Where the loss still falls at the end of so few, that may be said."""
    subject = importlib.import_module(f"tests.zoo.{name}").build()
    report = watched(Training(subject, 300))
    record_property("variant", "live zoo")
    record_property("examined", (len(report.stage_of) - len(report.not_examined), len(report.not_examined)))
    assert not [f for f in report.findings if f.name != "stopped-too-early"], report.to_text()
    # The watch has seen enough of it not to leave open whether it learns.
    assert not report.unanswered, report.to_text()
