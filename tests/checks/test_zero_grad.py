"""A forgotten zero_grad against everything that only looks like one."""

import pytest
import torch

from tests.checks import clearing_oddities  # noqa: F401  its loops enter themselves
from tests.checks.clearing_loops import HEALTHY, SICK
from tests.checks.loops import batches, loss_of, names, net, watch


@pytest.mark.parametrize("options", [{"every": 1}, {"every": 1000}], ids=["looking", "not looking"])
@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_loop_that_clears_is_not_accused(name: str, options: dict) -> None:
    report = watch(*HEALTHY[name](), **options)
    assert not report.findings, report.to_text()
    assert report.steps >= 10 or name == "scaler_that_skips"


@pytest.mark.parametrize("options", [{"every": 1}, {"every": 1000}], ids=["looking", "not looking"])
@pytest.mark.parametrize("name", SICK)
def test_a_loop_that_does_not_clear_is_named(name: str, options: dict) -> None:
    report = watch(*SICK[name](), **options)
    assert names(report) == ["missing-zero-grad"], report.to_text()
    (culprit,) = report.culprits
    assert culprit.finding.location is not None
    assert "backward" in culprit.finding.location.text


def test_a_loop_without_an_optimiser_is_not_examined() -> None:
    model = net()

    def run() -> None:
        for batch in batches():
            loss_of(model, batch).backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad

    report = watch(model, [], run)
    assert not report.findings
    assert "missing-zero-grad" in report.not_examined
    assert "missing-step" in report.not_examined
