"""A watch counts steps from 0, a trial from 1; what began with the training began at the same time."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sleuth.core.check import Check, Evidence, Seen, check
from sleuth.core.diagnosis import diagnose
from sleuth.core.engine import Engine
from sleuth.core.observation import Step
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Trial


@dataclass(frozen=True)
class Tried(Trial):
    from_step: int


def metadata(code: str) -> dict:
    return {"code": code, "stage": Stage.TRAINING, "severity": Severity.ERROR, "title": "", "why": "", "fix": ""}


@check(**metadata("X001"), reads=(Tried,), explains=("heard-symptom",))
def tried_cause(seen: Seen) -> Iterator[Evidence]:
    yield Evidence("", first_step=seen.one(Tried).from_step)


@check(**metadata("X002"), reads=(Step,))
def heard_symptom(seen: Seen) -> Iterator[Evidence]:
    yield Evidence("", first_step=seen.all(Step)[0].step)


CHECKS: list[Check] = [tried_cause, heard_symptom]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("from_step", "culprits"), [(1, ["tried-cause"]), (2, ["tried-cause", "heard-symptom"])])
def test_a_cause_that_a_trial_found_is_counted_like_the_steps_that_were_heard(
    first: int, from_step: int, culprits: list[str]
) -> None:
    engine = Engine(CHECKS)
    engine.emit(Tried(from_step))
    for step in range(first, first + 5):
        engine.emit(Step(step, 1.0))
    found = diagnose(engine.judge().findings, {c.name: c.explains for c in CHECKS})
    assert sorted(c.finding.name for c in found) == sorted(culprits)
