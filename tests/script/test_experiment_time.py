"""Experiments after the end: how long, in which order, and at which rate."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters.torch.adapter import TorchAdapter
from sleuth.checks import all_checks
from sleuth.core.contract.kept import Kept, Passed
from sleuth.core.engine import Engine
from sleuth.core.observation import Absent, Observation, Step
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import GradientNoise, NoiseScale, RangeTest
from sleuth.probes.lab.probe import Lab, OutOfTime, Probe, all_probes
from sleuth.session import experiment_time
from sleuth.session.aftermath import Aftermath
from sleuth.session.recorded import RecordedTraining


def recorded(rates: list[float], seconds: float = 0.0) -> RecordedTraining:
    found = RecordedTraining(TorchAdapter(), "", Engine(all_checks()))
    found.take(*(Step(step, loss=1.0, lr=rate) for step, rate in enumerate(rates)))
    found.seconds = seconds
    return found


@pytest.mark.parametrize(("took", "given"), [(0.5, 6.0), (20.0, 20.0), (4000.0, 60.0)])
def test_experiments_may_take_as_long_as_the_training(took: float, given: float) -> None:
    assert experiment_time.budget_for(recorded([0.1], took)) == given


def test_a_warm_up_by_hand_leads_to_the_rate_that_counts() -> None:
    warm_up = [1e-5 * (step + 1) for step in range(100)] + [1e-3] * 100
    assert experiment_time.highest_rate(recorded(warm_up)) == pytest.approx(1e-3)
    assert experiment_time.highest_rate(recorded([0.1 / (1 + step) for step in range(100)])) is None
    assert experiment_time.highest_rate(recorded([0.1] * 50 + [30.0] + [0.1] * 50)) is None, "a single one is a misreading"


def test_what_a_check_waits_for_comes_first() -> None:
    probes = all_probes()
    turns = [p for p in experiment_time.undecided_first(probes, frozenset({RangeTest})) if p.share >= experiment_time.LITTLE]
    assert turns[0].name == "range_test"
    assert experiment_time.undecided_first(probes, frozenset()) == probes


def test_checks_that_have_what_they_read_wait_for_nothing() -> None:
    waiting = experiment_time.undecided(recorded([0.1] * 20))
    assert RangeTest in waiting
    assert Step not in waiting


def aftermath_of(rate: float | None = None, seconds: float = 20.0) -> Aftermath:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    batches = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(4)]
    subject = Subject(model, None, functional.cross_entropy, torch.optim.SGD(model.parameters(), lr=1e-5))
    passed = [Passed(step, Parts(x, y, (x, y))) for step, (x, y) in enumerate(batches)]
    found = Aftermath(TorchAdapter(), Kept(subject, passed, at_start=True), seconds, lambda what: what is Step)
    found.rate = rate
    return found


def test_rates_are_tried_around_the_one_that_the_training_came_to() -> None:
    seen: list[Observation] = []
    wanted = [p for p in all_probes() if p.name in ("reading", "range_test")]
    aftermath_of(rate=0.1).examine(seen.append, lambda _: None, wanted)
    (test,) = (o for o in seen if isinstance(o, RangeTest))
    assert test.current == pytest.approx(0.1)


def test_what_was_cut_off_is_tried_again_when_the_others_had_their_shares() -> None:
    attempts: list[float] = []

    def slow(lab: Lab) -> Iterator[Observation]:
        attempts.append(lab.probe_deadline - lab.clock())
        if len(attempts) == 1:
            raise OutOfTime
        yield NoiseScale(*_any(NoiseScale))

    seen: list[Observation] = []
    found = aftermath_of()
    probe = Probe("slow", "Being slow", Stage.HYPERPARAMETERS, 1, (NoiseScale, GradientNoise), (), 0.1, slow)
    found.examine(seen.append, lambda _: None, [probe])
    assert len(attempts) == 2
    assert attempts[1] > 5 * attempts[0], "all the time there is"
    assert isinstance(seen[-2], NoiseScale)
    assert not found.notes


def test_what_refuses_is_not_asked_again() -> None:
    seen: list[Observation] = []
    (probe,) = (p for p in all_probes() if p.name == "second_pass")
    aftermath_of().examine(seen.append, lambda _: None, [replace(probe, share=0.5)])
    assert len([o for o in seen if isinstance(o, Absent) and o.what in probe.emits]) == len(probe.emits)


def _any(kind: type[Any]) -> list[Any]:
    return [0.0 for _ in kind.__dataclass_fields__]
