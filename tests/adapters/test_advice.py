"""What to do is said in the words of the framework that it is said to."""

from collections.abc import Iterator

import numpy as np
import pytest

import sleuth
from sleuth.adapters import SPOKEN, advice_in, in_words_of
from sleuth.checks import all_checks
from sleuth.core.check import Evidence, NotExamined, Seen
from sleuth.core.engine import Engine
from sleuth.core.observation import Step
from sleuth.core.settings import Configuration
from sleuth.session.report import build_report
from sleuth.testing import Kit
from tests.authoring.advice import speaks_torch
from tests.conftest import kits
from tests.core.test_engine import make
from tests.material import digits

OTHERS = [kit for kit in kits() if kit.name != SPOKEN]
FIXES = {check.name: check.fix for check in all_checks()}


@pytest.mark.parametrize("kit", OTHERS, ids=lambda kit: kit.name)
def test_whoever_can_have_an_illness_is_told_in_its_own_words(kit: Kit) -> None:
    told = advice_in(kit.name)
    assert set(told) <= set(FIXES)
    possible = {check for check in all_checks() if check.name not in kit.absent}
    foreign = {c.name for c in possible if speaks_torch(c)}
    assert not sorted(foreign - set(told))


def test_nobody_who_does_not_build_on_it_is_told_of_torch() -> None:
    foreign = {
        kit.name: [n for n, text in advice_in(kit.name).items() if "torch" in text] for kit in OTHERS if kit.name != "keras"
    }
    assert not any(foreign.values()), foreign
    assert advice_in(SPOKEN) == advice_in(None) == {}


def test_a_report_speaks_so() -> None:
    kit = next(kit for kit in OTHERS if kit.name == "numpy")
    x, y = digits()
    x = x.copy()
    x[5, 3] = np.nan
    model = kit.mlp(64, 16, 10)
    report = sleuth.examine(model, (x, y), loss=kit.loss("cross-entropy"), select=["input-not-finite"], progress=False)
    (finding,) = report.findings
    assert finding.fix == advice_in("numpy")[finding.name] != FIXES[finding.name]


def test_a_text_of_a_findings_own_stays_where_it_can_be_understood() -> None:
    own = "Give it a layer more (in torch: nn.Sequential(nn.Linear(2, 3), nn.ReLU())), or two."
    assert in_words_of("jax", "zero-gradients", own, "usual") == "Give it a layer more, or two."
    assert in_words_of("jax", "zero-gradients", "Call h.detach().", "usual") == advice_in("jax")["zero-gradients"]
    assert in_words_of("jax", "loss-diverges", own, "usual") == "Give it a layer more, or two."
    assert in_words_of(SPOKEN, "zero-gradients", own, "usual") == own


def test_what_sleuth_says_of_itself_is_told_in_every_framework() -> None:
    def broken(seen: Seen) -> Iterator[Evidence | NotExamined]:
        raise ZeroDivisionError("oops")
        yield

    engine = Engine([make(broken)], Configuration())
    engine.emit(Step(0, 0.5))
    report = build_report(engine, source="watch", framework="jax", subject="", seconds=1.0)
    assert [f.name for f in report.findings] == ["sleuth-failed"]
