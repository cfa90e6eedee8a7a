"""The plain facts of a report."""

import json

import numpy as np
import pytest

from sleuth.core.history import History
from sleuth.core.observation import ArrayFacts, Batch, Evaluation, Settings, Split, Step
from sleuth.core.recording.facts import facts_of
from sleuth.core.statistics import Statistics
from sleuth.core.trial import InitialLoss, Overfit, RangeTest
from sleuth.views.facts import number, told

EMPTY = Statistics(4, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 4, 0)
SOME = Statistics(64, 0.5, 4.0, 0.0, 1.0, 32.0, 0, 0, 0)


def history(*observations) -> History:
    seen = History()
    for observation in observations:
        seen.add(observation)
    return seen


def batch(split: Split, statistics: Statistics = SOME, labels=None) -> Batch:
    array = ArrayFacts("input", (8, 8), "float32", statistics, 0.0)
    return Batch(split, 0, 8, (array,), None, labels=labels)


def test_nothing_seen_gives_no_facts() -> None:
    assert facts_of(History()) == {}


def test_what_was_seen_is_told_and_plain() -> None:
    facts = facts_of(
        history(
            batch(Split.TRAIN, labels={0: 6, 1: 2}),
            batch(Split.TRAIN, labels={0: 6, 1: 2}),
            batch(Split.VALIDATION),
            Settings("torch", "MSELoss", "SGD", 0.1, versions={"torch": "2"}),
            InitialLoss(2.3, 2.302, 0.1, "ln 10 for 10 classes"),
            Overfit(8, 100, 0.0, "", (2.3, 0.1), 0.1, 0.3, (2.3, 0.01)),
            Step(0, 2.3, gradient_norm=0.5),
            Step(1, None, gradient_norm=1.5),
            Evaluation(1, Split.VALIDATION, {"loss": 0.7}),
            RangeTest((0.1,), (1.0,), 0.1, 0.2, "", 0.1),
        )
    )
    json.dumps(facts, allow_nan=False)
    assert facts["labels"] == {"0": 12, "1": 4}
    assert facts["training"] == {"steps": 2, "first": 2.3, "last": None, "gradient_norm": [0.5, 1.5], "validation": {"loss": 0.7}}
    assert facts["one_batch"]["tuned_last"] == 0.01
    lines = {label: text for pairs in told(facts).values() for label, text in pairs}
    assert lines["Loss at start"] == "2.3 (guessing gives 2.302: ln 10 for 10 classes)"
    assert lines["Loss"] == "2.3 → not finite in 2 steps"
    assert lines["Optimiser"] == "SGD, learning rate 0.1"


def test_an_input_without_a_finite_value_has_no_range() -> None:
    facts = facts_of(history(batch(Split.TRAIN, EMPTY)))
    assert facts["inputs"][0]["min"] is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1797, "1,797"),
        (0.25, "0.25"),
        (2.3026, "2.303"),
        (123.456, "123.5"),
        (1e-7, "1.0e-07"),
        (np.float32(1.5), "1.5"),
        (None, "not finite"),
    ],
)
def test_numbers_read_as_a_person_writes_them(value: float | None, text: str) -> None:
    assert number(value) == text
