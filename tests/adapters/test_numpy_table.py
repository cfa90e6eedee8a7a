"""Networks as people write them, whole and with one mistake each: the mistake is named first, and the whole ones are left alone.

`./dev bench numpy_table` prints all of it, with what is said.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.adapters.numpy_table.faults import FAULTS, FORMS, NAMES, Fault, told
from tests.adapters.numpy_table.judging import report_of

# What is not named, or not first, and why.
MISSED = {
    "layer_list-sign-of-step-watched": "that the loss rises shows; that the step adds what it should take off does not",
    "moving_class-sign-watched": "no gradient leaves the class, so a watch sees only that the loss rises",
    "moving_class-stale-weights": "what is changed does not grow with the rate, so it is no gradient to compare",
    "moving_class-integer-rate-watched": "no gradient leaves the class",
    "conv_by_hand-integer-rate-watched": "no gradient leaves the class: that the loss stands still is told",
    "conv_by_hand-forgot-layer-watched": "no gradient leaves the class: its filters may stay on purpose",
    "cached_functions-forgot-update": "the short trial of examine does not ask which weights an update leaves out",
    "train_step-forgot-layer-watched": "the step shows no gradient: the weights may stay on purpose",
    "train_step-softmax-axis": "the step shows neither scores nor probabilities: the gradients that it spoils are told",
}
QUICK = (
    "course_class-no-mean",
    "moving_class-no-derivative",
    "train_step-transposed",
    "weight_lists-no-axis",
    "conv_by_hand-sign",
)


def _marked(fault: Fault) -> object:
    marks = [] if fault.id in QUICK else [pytest.mark.long]
    if fault.id in MISSED:
        marks.append(pytest.mark.xfail(reason=MISSED[fault.id], strict=False))
    return pytest.param(fault, id=fault.id, marks=marks)


@pytest.fixture(autouse=True)
def _their_own_warnings() -> object:
    """A training that goes wrong overflows."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.mark.parametrize("fault", [_marked(fault) for fault in FAULTS])
def test_the_mistake_is_the_first_culprit(fault: Fault, tmp_path: Path) -> None:
    report = report_of(fault.id, fault.source(), fault.by, tmp_path)
    assert report.culprits
    assert told(fault, report.culprits[0].finding)["name"], report.culprits[0].finding


@pytest.mark.long
@pytest.mark.parametrize("by", ["examine", "watch"])
@pytest.mark.parametrize("form", NAMES)
def test_a_network_that_is_whole_is_left_alone(form: str, by: str, tmp_path: Path) -> None:
    report = report_of(f"{form}-whole-{by}", (FORMS / f"{form}.py").read_text(encoding="utf-8"), by, tmp_path)
    assert report.status == "healthy"
    assert not [f for f in report.findings if f.severity.name in ("ERROR", "WARNING")]
