"""What the pages are told."""

import json
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest

from sleuth.core.observation import Role
from sleuth.store.arrays import StoredRun
from sleuth.store.condensed import Condensed
from sleuth.store.following import FollowedRun
from sleuth.store.partings import clearly_apart
from sleuth.ui.board import Board, open_board
from sleuth.ui.paced import Paced
from tests.ui.conftest import AGAIN, FAST, SICK, SLOW, STEPS


@pytest.fixture(scope="module")
def board(runs: Path) -> Board:
    return open_board(runs)


def listed(board: Board) -> dict[str, dict[str, object]]:
    return {run["name"]: run for run in json.loads(board.listing().body)["runs"]}


def test_the_list_says_of_each_run_how_far_it_came_and_what_is_wrong(board: Board) -> None:
    deadline = time.monotonic() + 30
    while any(run["verdict"] is None for run in listed(board).values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    found = listed(board)
    assert list(found) == sorted(found, reverse=True)
    assert (found[SLOW]["steps"], found[SLOW]["status"], found[SLOW]["culprit"]) == (STEPS, "completed", None)
    assert found[SICK]["culprit"] == "missing-zero-grad"


def test_a_run_that_cannot_be_read_does_not_hide_the_others(runs: Path, tmp_path: Path) -> None:
    _copy(runs / SLOW, tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "rank0.sqlite").write_bytes(b"no database")
    found = listed(open_board(tmp_path))
    assert found["bad"]["status"] == "unreadable"
    assert found["good"]["steps"] == STEPS


def test_a_run_without_an_end_is_running_only_as_long_as_it_writes(runs: Path, tmp_path: Path) -> None:
    _copy(runs / SLOW, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run" / "rank0.sqlite") as database:
        database.execute("DELETE FROM log WHERE kind = 'Ending'")
        database.execute("DELETE FROM facts WHERE name = 'end'")
        database.execute("UPDATE facts SET value = ? WHERE name = 'written'", (str(time.time()),))
    assert listed(open_board(tmp_path))["run"]["status"] == "running"
    with sqlite3.connect(tmp_path / "run" / "rank0.sqlite") as database:
        database.execute("UPDATE facts SET value = '1.0' WHERE name = 'written'")
    assert listed(open_board(tmp_path))["run"]["status"] == "silent"


def test_runs_that_are_alike_do_not_part(board: Board) -> None:
    found = json.loads(board.compare([SLOW, AGAIN]).body)["comparison"]
    assert found["partings"][0]["headline"] == "They do not part: whatever both runs recorded is the same to the last bit."
    assert found["options"] == []


def test_a_comparison_names_what_differs_and_where_runs_part(board: Board) -> None:
    found = json.loads(board.compare([SLOW, FAST]).body)["comparison"]
    assert found["options"] == [{"name": "learning rate", "values": ["0.1", "0.3"]}]
    (parting,) = found["partings"]
    # The first step begins from the same weights: what it changes is the first that differs.
    assert parting["headline"] == "They part at step 0: in the updates, first in first.weight."
    assert any(text.startswith("loss differs first at step 1:") for text in parting["sentences"])
    assert found["charts"][0]["title"] == "Loss"
    assert {trace["name"] for trace in found["charts"][0]["figure"]["data"]} == {SLOW, FAST}


@pytest.mark.parametrize("gap, expected", [(0.0, None), (1.0, True)])
def test_curves_are_apart_when_they_differ_by_more_than_their_noise(gap: float, expected: bool | None) -> None:
    rng = np.random.default_rng(0)
    course = np.linspace(2, 1, 1000)
    mine, yours = course + rng.normal(0, 0.3, 1000), course + rng.normal(0, 0.3, 1000)
    yours[600:] -= gap
    found = clearly_apart(mine, yours)
    assert found is None if expected is None else found is not None and abs(found - 600) < 40


def test_a_followed_run_says_what_a_stored_one_says(runs: Path) -> None:
    file = runs / SLOW / "rank0.sqlite"
    followed, stored = FollowedRun(file), StoredRun(file)
    for name, curve in stored.curves().items():
        np.testing.assert_array_equal(followed.curves()[name].values, curve.values)
    for role in Role:
        np.testing.assert_array_equal(followed.statistics(role).values, stored.statistics(role).values)


def test_condensed_statistics_stay_small_and_keep_a_single_outlier() -> None:
    rng = np.random.default_rng(0)
    rows = np.ones((5000, 3, 9), dtype=np.float32)
    rows[:, :, 1] = rng.normal(1, 0.01, (5000, 3))
    rows[:, :, 6:] = 0
    rows[3333, 1, 1] = 1e6
    rows[4444, 2, 7] = 1  # a NaN
    condensed = Condensed(100)
    for begin in range(0, 5000, 7):
        condensed.add(np.arange(begin, min(begin + 7, 5000)), ("a", "b", "c"), rows[begin : begin + 7])
    table = condensed.table()
    assert 50 < len(table.steps) <= 100
    assert set(np.diff(table.steps)) == {64}
    assert table.column("mean")[:, 1].max() == 1e6
    assert table.column("nans").sum(axis=0).tolist() == [0, 0, 1]


def test_an_answer_is_made_again_only_when_its_cost_allows_it() -> None:
    now = [0.0]
    made: list[int] = []
    paced: Paced[int] = Paced(4, clock=lambda: now[0])

    def make() -> int:
        now[0] += 1.0  # it takes a second
        made.append(len(made))
        return made[-1]

    assert paced.get("key", "a", make) == ("a", 0)
    assert paced.get("key", "b", make) == ("a", 0)
    now[0] += 4.1
    assert paced.get("key", "b", make) == ("b", 1)
    now[0] += 10
    assert paced.get("key", "b", make) == ("b", 1)


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    (target / "rank0.sqlite").write_bytes((source / "rank0.sqlite").read_bytes())
