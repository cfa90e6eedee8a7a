"""Losses of every kind: a right wiring is silent, a wrong one is named, whoever wrote the loss."""

import pytest

from sleuth import examine
from sleuth.core.subject import Subject
from tests.checks.looking import BASIS, Look, look_with
from tests.checks.loss_zoo import HEALTHY
from tests.checks.loss_zoo_sick import SICK

WIRING = {
    "forward-fails", "output-not-finite", "output-target-mismatch", "loss-broadcasts", "double-softmax", "missing-log-softmax",
    "softmax-wrong-axis", "single-unit-softmax", "wrong-loss-for-task", "wrong-last-activation", "initial-loss-off",
}  # fmt: skip


def judged(subject: Subject) -> Look:
    return look_with({*BASIS, "initial_loss"}, subject, *WIRING)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_right_wiring_is_silent(name: str) -> None:
    assert not judged(HEALTHY[name]()).findings


@pytest.mark.parametrize("name", SICK)
def test_a_wrong_wiring_is_named(name: str) -> None:
    expected, build = SICK[name]
    found = {f.name for f in judged(build()).findings}
    assert expected in found
    assert found <= {expected, "initial-loss-off"}


def test_a_loss_by_hand_is_examined_where_its_values_tell_which_it_is() -> None:
    for name in ("focal_loss", "mixture_density", "nll_from_logsumexp", "ctc"):
        assert "double-softmax" not in judged(HEALTHY[name]()).not_examined, name


def examined(subject: Subject):
    return examine(
        subject.model, subject.train, loss=subject.loss, optimizer=subject.optimizer, step=subject.step, progress=False
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_with_this_loss_is_silent_under_every_check(name: str) -> None:
    report = examined(HEALTHY[name]())
    assert not report.findings, report.to_text()
    assert report.status == "healthy"


@pytest.mark.long
@pytest.mark.parametrize("name", SICK)
def test_a_wrong_wiring_is_the_first_culprit(name: str) -> None:
    expected, build = SICK[name]
    report = examined(build())
    assert [c.finding.name for c in report.culprits] == [expected], report.to_text()
