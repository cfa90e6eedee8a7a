"""Which cases of the grid run when."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import kits
from tests.grid import CASES
from tests.schedule import QUICK, TURNS, marks

ROOT = Path(__file__).parents[1]
# A test of each kind, under the options and marks of the schedule.
CONFTEST = """
from tests.schedule import add_markers as pytest_configure, add_options as pytest_addoption
from tests.schedule import announce as pytest_terminal_summary, select as pytest_collection_modifyitems
"""
TESTS = """
import pytest
def test_quick(): pass
@pytest.mark.long
def test_long(): pass
@pytest.mark.long
@pytest.mark.turn(1)
def test_of_turn_1(): pass
@pytest.mark.long
@pytest.mark.turn(2)
def test_of_turn_2(): pass
"""
GRID = [
    (case.name, kit.name, healthy, {mark.name: mark.args for mark in marks(case.name, kit.name, (row, column), healthy=healthy)})
    for column, kit in enumerate(kits())
    for row, case in enumerate(CASES)
    for healthy in (False, True)
]


def test_what_is_quick_names_kits_and_cases_that_exist() -> None:
    assert QUICK.keys() < {kit.name for kit in kits()}
    assert set().union(*QUICK.values()) <= {case.name for case in CASES}


def test_all_sick_cases_of_torch_and_some_of_every_other_framework_run_every_time() -> None:
    every_time = Counter(kit for _, kit, healthy, marked in GRID if not marked and not healthy)
    assert every_time == {"torch": len(CASES), **{kit: len(names) for kit, names in QUICK.items()}}


def test_healthy_cases_are_long_and_those_of_torch_wait_for_no_turn() -> None:
    assert all("long" in marked for *_, healthy, marked in GRID if healthy)
    assert all("turn" not in marked for _, kit, _, marked in GRID if kit == "torch")


def test_each_turn_has_a_like_part_of_the_long_cases_of_every_other_framework() -> None:
    parts = Counter((kit, marked["turn"][0]) for _, kit, _, marked in GRID if "long" in marked and kit != "torch")
    assert parts.keys() == {(kit, turn) for kit in QUICK for turn in range(TURNS)}
    for kit in QUICK:
        sizes = [parts[kit, turn] for turn in range(TURNS)]
        assert max(sizes) - min(sizes) <= len(QUICK[kit]) + 2, f"{kit}: {sizes}"


def test_in_each_turn_every_case_runs_in_some_framework_other_than_torch() -> None:
    for turn in range(TURNS):
        here = {case for case, _, _, marked in GRID if marked.get("turn") == (turn,)}
        assert here == {case.name for case in CASES}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"quick"}),
        (("--full",), {"quick", "long", "of_turn_1", "of_turn_2"}),
        (("--long",), {"long", "of_turn_1", "of_turn_2"}),
        (("--long", "--turn", str(5 * TURNS + 2)), {"long", "of_turn_2"}),
        (("--full", "--turn", "1"), {"quick", "long", "of_turn_1"}),
    ],
)
def test_options_choose_what_runs(options: tuple[str, ...], expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_them.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--rootdir", tmp_path, *options, tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = {line.split("::test_")[1].split()[0] for line in done.stdout.splitlines() if " PASSED" in line}
    assert passed == expected
    assert ("those of turn" in done.stdout) == ("--turn" in options)
