"""The scripts of `./dev bench scripts`: answers, repairs, and the table that says what each set is and how its first run went."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "benchmarks"
SETS = ROOT / "scripts"
NAMES = sorted(answers.parent.relative_to(SETS).as_posix() for answers in SETS.glob("*/*/answers.toml"))
KINDS = ("sick", "late", "healthy")
ROW = re.compile(r"(?P<mark>right|WRONG|quiet|LOUD) +(?P<kind>\w+)/\S+\.py *(?P<rest>.*)")


def test_the_table_has_a_row_for_every_set() -> None:
    assert sorted(table()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_script_has_an_answer_that_quotes_it(name: str) -> None:
    folder = SETS / name
    answers = tomllib.loads((folder / "answers.toml").read_text())["script"]
    assert sorted(a["path"] for a in answers) == sorted(p.relative_to(folder).as_posix() for p in folder.glob("*/*.py"))
    for answer in answers:
        assert answer["path"].split("/")[0] == answer["kind"]
        lines = [line.strip() for line in (folder / answer["path"]).read_text().splitlines()]
        assert all(quoted in lines for quoted in (answer.get("line"), answer.get("origin")) if quoted), answer["path"]


@pytest.mark.parametrize("name", NAMES)
def test_every_sick_script_has_a_repair_that_fits_it(name: str) -> None:
    folder = SETS / name
    _, *repairs = re.split(r"^--- a/", (folder / "repairs.patch").read_text(), flags=re.MULTILINE)
    repaired = {repair.split(maxsplit=1)[0]: repair for repair in repairs}
    assert sorted(repaired) == sorted(
        p.relative_to(folder).as_posix() for k in ("sick", "late") for p in folder.glob(f"{k}/*.py")
    )
    for path, repair in repaired.items():
        text = (folder / path).read_text()
        for hunk in re.split(r"^@@.*@@.*\n", repair, flags=re.MULTILINE)[1:]:
            before = [line[1:] for line in hunk.splitlines() if not line.startswith(("+", "\\"))]
            assert "\n".join(before).strip("\n") in text, path


@pytest.mark.parametrize("name", NAMES)
def test_the_table_counts_the_scripts_and_tells_their_first_run(name: str) -> None:
    *_, written, now, culprit, line, silent = table()[name]
    assert now == ", ".join(str(len(list((SETS / name / kind).glob("*.py")))) for kind in KINDS)
    kept = (ROOT / "results" / "scripts" / f"{name.replace('/', '-')}.txt").read_text()
    rows = [found for row in kept.split("\n== ")[1].splitlines() if (found := ROW.match(row))]
    sick = [row for row in rows if row["kind"] != "healthy"]
    placed = [row for row in sick if "no line" not in row["rest"]]
    there = [row for row in placed if row["mark"] == "right" and row["rest"].rstrip().endswith(" line")]
    healthy = [row for row in rows if row["kind"] == "healthy"]
    assert written == ", ".join(str(sum(row["kind"] == kind for row in rows)) for kind in KINDS)
    assert culprit == f"{sum(row['mark'] == 'right' for row in sick)} of {len(sick)}"
    assert line == f"{len(there)} of {len(placed)}"
    assert silent == f"{sum(row['mark'] == 'quiet' for row in healthy)} of {len(healthy)}"
    assert kept.startswith(
        f"First run: {culprit} sick and late scripts with the right first culprit, {line} with the right line as well; "
        f"{silent} healthy ones silent.\n"
    )


def table() -> dict[str, list[str]]:
    rows = re.findall(r"^\| (\w+/\w+) \| (.*) \|$", (SETS / "README.md").read_text(), flags=re.MULTILINE)
    return {name: rest.split(" | ") for name, rest in rows}
