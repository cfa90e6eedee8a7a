"""The golden tables have a row for every sick case that can be built, and for nothing else; several processes may write them."""

import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.testing import CannotBuild, Kit
from tests.conftest import kits
from tests.golden_tables import FOLDER, agree, rows, table, text_of, write_row
from tests.grid import CASES, cases_of

ROOT = Path(__file__).parents[1]
WRITERS, ROWS = 3, 200
# Each begins when all are there.
WRITER = f"""
import sys, time
from pathlib import Path
from tests.golden_tables import write_row
folder, writer = Path(sys.argv[1]), sys.argv[2]
(folder / f"{{writer}}.ready").touch()
while len(list(folder.glob("*.ready"))) < {WRITERS}:
    time.sleep(0.01)
for row in range({ROWS}):
    write_row("torch", f"case-{{row}}-{{writer}}", "-", folder)
"""

by_kit = pytest.mark.parametrize("kit", kits(), ids=lambda kit: kit.name)


def test_every_table_belongs_to_a_kit() -> None:
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(table(kit.name).name for kit in kits())


@by_kit
def test_every_row_belongs_to_a_case_of_the_kit(kit: Kit) -> None:
    """Whether the case can be built as well, its own test asks: to build all of them takes half a minute."""
    gone = sorted(rows(kit.name).keys() - ({case.name for case in CASES} - kit.absent.keys()))
    assert not gone, f"{table(kit.name)} has rows of cases that do not exist, delete them: {', '.join(gone)}"


@by_kit
def test_every_case_without_a_row_cannot_be_built(kit: Kit) -> None:
    told = rows(kit.name)
    missing = [case.name for case in cases_of(kit) if case.name not in told and _can_build(case.sick, kit)]
    assert not missing, f"{table(kit.name)} lacks rows, run these with --update-golden: {', '.join(missing)}"


def _can_build(build, kit: Kit) -> bool:
    try:
        build(kit)
    except CannotBuild:
        return False
    return True


@by_kit
def test_a_table_stands_as_it_would_be_written(kit: Kit) -> None:
    assert table(kit.name).read_text(encoding="utf-8") == text_of(rows(kit.name))


def test_a_row_is_written_and_removed_without_touching_the_others(tmp_path: Path) -> None:
    for case, found in (("b", "-"), ("c", "x, y; z: -"), ("a", "x"), ("b", "y")):
        write_row("torch", case, found, tmp_path)
    assert list(rows("torch", tmp_path).items()) == [("a", "x"), ("b", "y"), ("c", "x, y; z: -")]
    write_row("torch", "a", None, tmp_path)
    write_row("torch", "never-there", None, tmp_path)
    assert list(rows("torch", tmp_path)) == ["b", "c"]


def test_rows_that_several_processes_write_at_once_are_all_kept(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(n)], cwd=ROOT) for n in range(WRITERS)]
    assert [writer.wait() for writer in writers] == [0] * WRITERS
    assert len(rows("torch", tmp_path)) == WRITERS * ROWS


@pytest.mark.parametrize(
    ("found", "row", "same"),
    [
        ("a, b; c: -", "b, a; c: -", True),
        ("a", "a, b?", True),
        ("a, b", "a, b?", True),
        ("-", "b?", True),
        ("a, b", "a", False),
        ("a", "a, b", False),
        ("-; c: a", "-; d: a", False),
        ("-; c: -; d: -", "-; d: -; c: -", False),
    ],
)
def test_culprits_are_compared_in_their_order_and_symptoms_as_a_set(found: str, row: str, same: bool) -> None:
    assert agree(found, row) is same
