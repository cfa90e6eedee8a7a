"""Which finding is the answer."""

from itertools import permutations

import pytest

from sleuth.checks import all_checks
from sleuth.core.diagnosis import diagnose
from sleuth.core.finding import Finding
from sleuth.core.stage import Confidence, Severity, Stage


def finding(name: str, **changes) -> Finding:
    values = {
        "code": "X000",
        "name": name,
        "stage": Stage.TRAINING,
        "severity": Severity.ERROR,
        "confidence": Confidence.LIKELY,
        "title": name,
        "summary": name,
        "why": "",
        "fix": "",
    }
    return Finding(**{**values, **changes})


def names(culprits) -> list[str]:
    return [c.finding.name for c in culprits]


def test_the_cause_comes_first_and_carries_its_symptoms() -> None:
    culprits = diagnose([finding("flat-loss"), finding("bad-labels")], {"bad-labels": ("flat-loss",)})
    assert names(culprits) == ["bad-labels"]
    assert [s.name for s in culprits[0].symptoms] == ["flat-loss"]
    assert culprits[0].symptoms[0].explained_by == "bad-labels"


def test_a_chain_of_causes_has_one_culprit() -> None:
    found = [finding("c"), finding("b"), finding("a")]
    culprits = diagnose(found, {"a": ("b",), "b": ("c",)})
    assert names(culprits) == ["a"]
    assert {s.name for s in culprits[0].symptoms} == {"b", "c"}


def test_a_cause_never_begins_after_its_symptom() -> None:
    late = finding("cause", first_step=50)
    early = finding("symptom", first_step=10)
    assert set(names(diagnose([late, early], {"cause": ("symptom",)}))) == {"cause", "symptom"}


def test_what_held_before_training_precedes_every_step() -> None:
    cause, symptom = finding("cause"), finding("symptom", first_step=0)
    assert names(diagnose([cause, symptom], {"cause": ("symptom",)})) == ["cause"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"severity": Severity.ERROR}, {"severity": Severity.WARNING, "stage": Stage.DATA}),
        ({"confidence": Confidence.CERTAIN}, {"stage": Stage.DATA}),
        ({"stage": Stage.DATA}, {"strength": 100.0}),
        ({"strength": 2.0}, {"strength": 1.0}),
    ],
    ids=["severity", "confidence", "stage", "strength"],
)
def test_culprits_are_ranked_by(first: dict, second: dict) -> None:
    assert names(diagnose([finding("b", **second), finding("a", **first)], {})) == ["a", "b"]


def test_a_warning_that_explains_an_error_ranks_as_one() -> None:
    rate = finding("rate", severity=Severity.WARNING, stage=Stage.HYPERPARAMETERS)
    column = finding("column", severity=Severity.WARNING, stage=Stage.DATA)
    culprits = diagnose([column, rate, finding("diverges")], {"rate": ("diverges",)})
    assert names(culprits) == ["rate", "column"]


@pytest.mark.parametrize(
    "weak",
    [
        {"severity": Severity.HINT, "confidence": Confidence.CERTAIN},
        {"severity": Severity.WARNING, "confidence": Confidence.POSSIBLE},
    ],
    ids=["a-hint", "a-possibility"],
)
def test_what_is_weak_does_not_swallow_what_is_worse(weak: dict) -> None:
    order, labels = finding("order", stage=Stage.DATA, **weak), finding("labels")
    assert names(diagnose([order, labels], {"order": ("labels",)})) == ["labels", "order"]


def test_a_hint_explains_another_hint() -> None:
    small, early = (finding(name, severity=Severity.HINT) for name in ("small", "early"))
    assert names(diagnose([small, early], {"small": ("early",)})) == ["small"]


def test_the_order_of_findings_does_not_matter() -> None:
    found = [finding("a", strength=3.0), finding("b", severity=Severity.WARNING), finding("c"), finding("d", strength=2.0)]
    explains = {"a": ("c",), "d": ("c", "b")}
    answers = {tuple(names(diagnose(order, explains))) for order in permutations(found)}
    assert len(answers) == 1


def test_nothing_found_means_no_culprit() -> None:
    assert diagnose([], {}) == ()


def test_explains_is_acyclic() -> None:
    explains = {c.name: c.explains for c in all_checks()}

    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join((*path, name))
        for other in explains.get(name, ()):
            walk(other, (*path, name))

    for name in explains:
        walk(name, ())
