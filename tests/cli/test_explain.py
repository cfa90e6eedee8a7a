"""`sleuth explain`, for names, codes and symptoms."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sleuth
from sleuth.checks import all_checks
from sleuth.cli import main

ROOT = Path(__file__).parents[2]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["explain", *words])


@pytest.mark.parametrize("word", ["vanishing-gradients", "T407", "t407", "vanishing_gradients", "Vanishing gradients"])
def test_a_check_is_found_as_people_type_it(word: str) -> None:
    result = run(word)
    assert result.exit_code == 0
    assert result.output.startswith("vanishing-gradients  T407")


@pytest.mark.parametrize("word", ["vanishing-gradient", "vanishing_gradeints"])
def test_a_misspelt_check_is_answered_with_the_nearest(word: str) -> None:
    result = run(word)
    assert result.exit_code == 2
    assert "Did you mean vanishing-gradients" in result.stderr


def test_a_code_that_is_not_there_is_no_symptom() -> None:
    result = run("T499")
    assert result.exit_code == 2
    assert "there is no check 'T499'" in result.stderr


@pytest.mark.parametrize("words", [("loss is nan",), ("loss", "is", "nan")])
def test_a_symptom_is_answered_with_its_likely_causes(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 0
    assert "This is loss-not-finite  T401" in result.output
    assert result.output.index("input-not-finite") < result.output.index("learning-rate-too-high")


def test_a_text_that_means_nothing_is_answered_with_what_to_do() -> None:
    result = run("banana bread")
    assert result.exit_code == 2
    assert "no check has to do with 'banana bread'" in result.stderr
    assert "sleuth checks" in result.stderr


def test_a_symptom_as_json_is_all_there_is_on_standard_output() -> None:
    result = run("loss is nan", "--json", "-")
    data = json.loads(result.stdout)
    assert (data["schema"], data["kind"], data["described"]) == (1, "symptom", "loss-not-finite")
    first = data["suspects"][0]
    assert first["name"] == "input-not-finite"
    assert first["command"] == "sleuth examine train.py:training --select input-not-finite"
    assert all(first[key] for key in ("because", "decided_by", "fix"))


def test_a_page_as_json_holds_the_example(tmp_path: Path) -> None:
    file = tmp_path / "page.json"
    result = run("double-softmax", "--json", str(file))
    assert result.output.startswith("double-softmax")
    data = json.loads(file.read_text())
    assert (data["kind"], data["code"]) == ("check", "M205")
    assert 'kit.layer("softmax", 1)' in data["example"]["sick"]
    assert data["example"]["finding"].startswith("✗ double-softmax  M205")
    assert "single-unit-softmax" in data["explained_by"]


def test_json_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    result = run("T407", "--json", str(tmp_path / "nowhere" / "page.json"))
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


@pytest.mark.parametrize("check", all_checks(), ids=[c.name for c in all_checks()])
def test_every_page_opens_and_can_be_written_as_json(check) -> None:
    result = run(check.code, "--json", "-")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["name"] == check.name


@pytest.mark.long
def test_an_installed_wheel_shows_cases_and_findings(tmp_path: Path) -> None:
    """From a folder without tests and docs, and without this checkout on the path."""
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", tmp_path, ROOT]
    subprocess.run(build, check=True, capture_output=True, text=True)
    wheel = next(tmp_path.glob("*.whl"))
    shipped = {Path(name).stem for name in zipfile.ZipFile(wheel).namelist() if "/views/examples/" in name}
    assert shipped == {c.name for c in all_checks()}
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    code = "import sleuth; print(sleuth.__file__); from sleuth.cli import main; main(['explain', 'D113'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    place, page = done.stdout.split("\n", 1)
    assert place.startswith(str(installed)), done.stderr
    assert place != sleuth.__file__
    assert "What sleuth says of the sick case\n    ✗ data-not-shuffled  D113" in page
