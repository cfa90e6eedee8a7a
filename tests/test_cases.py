"""Every case through every kit: the sick one is named first, the healthy one is silent under every check."""

import pytest

from sleuth import Report
from sleuth.checks import all_checks
from sleuth.testing import CannotBuild, Case, Elsewhere, Kit, discover
from tests import schedule
from tests.conftest import kits
from tests.golden_tables import found_in
from tests.grid import CASES, TWINS, cases_of, diagnosed


def pairs(*, healthy: bool) -> list:
    return [
        pytest.param(
            case, kit, id=f"{case.name}-{kit.name}", marks=schedule.marks(case.name, kit.name, (row, column), healthy=healthy)
        )
        for column, kit in enumerate(kits())
        for row, case in enumerate(cases_of(kit))
    ]


def run(case: Case, kit: Kit, variant: str, record_property) -> Report | CannotBuild:
    """The report of one variant; or, said in the matrix, why the kit cannot build the case."""
    try:
        report = diagnosed(case, kit, variant)
    except CannotBuild as reason:
        record_property("cannot_build", str(reason))
        return reason
    record_property("variant", variant)
    record_property("examined", (len(report.stage_of) - len(report.not_examined), len(report.not_examined)))
    return report


@pytest.mark.parametrize(("case", "kit"), pairs(healthy=False))
def test_a_sick_case_is_named_first(case: Case, kit: Kit, record_property, golden_row) -> None:
    report = run(case, kit, "sick", record_property)
    if isinstance(report, Elsewhere):  # another machine may have written a row
        return
    if isinstance(report, CannotBuild):
        golden_row(case.name, kit.name, None)
        return
    assert report.culprits, report.to_text()
    assert report.culprits[0].finding.name == case.name, report.to_text()
    golden_row(case.name, kit.name, found_in(report))


@pytest.mark.parametrize(("case", "kit"), pairs(healthy=True))
def test_a_healthy_case_is_silent(case: Case, kit: Kit, record_property) -> None:
    report = run(case, kit, "healthy", record_property)
    if isinstance(report, CannotBuild):
        return
    assert not report.findings, report.to_text()
    assert case.name in report.clear, f"{case.name} was not examined: {report.not_examined.get(case.name)}"


def test_every_check_has_a_case_of_its_name() -> None:
    assert {c.name for c in all_checks()} == {c.name for c in CASES}


def test_every_twin_and_every_absence_belongs_to_a_case() -> None:
    names = {case.name for case in CASES}
    for kit in kits():
        twins = {case.name for case in discover(TWINS / kit.name)}
        assert twins <= names
        assert set(kit.absent) <= names
        assert not twins & set(kit.absent)


def test_every_case_can_be_built_by_some_kit() -> None:
    for case in CASES:
        assert any(_can_build(case, kit) for kit in kits()), f"no kit can build {case.name}"


def _can_build(case: Case, kit: Kit) -> bool:
    try:
        case.sick(kit)
        case.healthy(kit)
    except Elsewhere:
        return True
    except CannotBuild:
        return False
    return True
