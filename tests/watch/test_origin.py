"""Where NaN and Inf are born: the operation, its layer, the user's line, the direction, and what to write instead."""

import inspect

import pytest
import torch

import sleuth
from sleuth.core.observation import Origin
from tests.watch.breaking import CASES, SICK, Breaking


@pytest.fixture(autouse=True)
def nothing_was_compiled():
    """Where something was, the loss expression is not listened to."""
    torch._dynamo.reset()


def watched(case: Breaking, **options):
    model, optimiser, loop = case.train()
    with sleuth.watch(model, optimiser, **{"directory": None, "quiet": True, **options}) as w:
        for _ in loop:
            pass
    return w


def line_to_blame(source) -> tuple[str, int]:
    lines, first = inspect.getsourcelines(source)
    return inspect.getsourcefile(source), first + next(i for i, line in enumerate(lines) if line.rstrip().endswith("# here"))


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize("name", CASES)
def test_the_origin_is_named(name: str) -> None:
    case = CASES[name]
    w = watched(case)
    assert not w.notes, w.notes
    (origin, *_) = w.history.many(Origin)
    assert (origin.operation, origin.direction, origin.layer) == (case.operation, case.direction, case.layer)
    assert origin.location is not None
    assert (origin.location.file, origin.location.line) == line_to_blame(case.source)
    assert origin.certain
    finding = w.report().culprits[0].finding
    assert finding.name == ("loss-not-finite" if case.direction == "forward" else "gradient-not-finite")
    assert finding.location == origin.location
    assert case.fix in finding.fix
    assert finding.numbers["operation"] == case.operation
    assert case.operation in finding.summary
    if case.sample:
        assert f"sample {SICK} of the data set" in finding.summary
