"""Which cases of the grid run when."""

from collections import Counter

from tests.conftest import kits
from tests.grid import CASES
from tests.schedule import QUICK, TURNS, marks

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
