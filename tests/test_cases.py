"""Every case through every kit: the sick one is named first, the healthy one is silent under every check."""

import pytest

from sleuth import Report
from sleuth.checks import all_checks
from sleuth.testing import CannotBuild, Case, Elsewhere, Kit, discover
from tests.conftest import TURNS, kits
from tests.grid import CASES, TWINS, cases_of, diagnosed


def pair(case: Case, kit: Kit, turn: int, healthy: bool = False):
    """The same checks judge every framework, and the zoo asks every time whether they are silent: the rest is asked at length.
    Outside torch they come by turns: in each a part of every framework's cases, and some frameworks of every case."""
    marks = [pytest.mark.long] if healthy or (kit.quick is not None and case.name not in kit.quick) else []
    if kit.quick is not None:
        marks.append(getattr(pytest.mark, f"turn_{turn % TURNS}"))
    return pytest.param(case, kit, id=f"{case.name}-{kit.name}", marks=marks)


BY_KIT = [(case, kit, row + column) for column, kit in enumerate(kits()) for row, case in enumerate(cases_of(kit))]
PAIRS = [pair(*given) for given in BY_KIT]
HEALTHY = [pair(*given, healthy=True) for given in BY_KIT]


def run(case: Case, kit: Kit, variant: str, record_property) -> Report | None:
    """The report of one variant; None, said in the matrix, when the kit cannot build the case."""
    try:
        report = diagnosed(case, kit, variant)
    except CannotBuild as reason:
        record_property("cannot_build", str(reason))
        return None
    record_property("variant", variant)
    record_property("examined", (len(report.stage_of) - len(report.not_examined), len(report.not_examined)))
    return report


@pytest.mark.parametrize(("case", "kit"), PAIRS)
def test_a_sick_case_is_named_first(case: Case, kit: Kit, record_property, golden) -> None:
    report = run(case, kit, "sick", record_property)
    if report is None:
        return
    assert report.culprits, report.to_text()
    assert report.culprits[0].finding.name == case.name, report.to_text()
    golden(f"cases/{case.name}.{kit.name}.txt", _names(report))


@pytest.mark.parametrize(("case", "kit"), HEALTHY)
def test_a_healthy_case_is_silent(case: Case, kit: Kit, record_property) -> None:
    report = run(case, kit, "healthy", record_property)
    if report is None:
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


def _names(report: Report) -> str:
    """The row of the golden table: culprits with their symptoms, in order."""
    lines = [f"{c.finding.name}: {', '.join(s.name for s in c.symptoms) or '-'}" for c in report.culprits]
    return "\n".join(lines) + "\n"
