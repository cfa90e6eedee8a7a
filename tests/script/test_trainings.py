"""Training scripts as they are, in processes of their own: the same to the last bit, and the cause with its line."""

import json
import shutil
import signal
from pathlib import Path

import pytest

import sleuth
from tests.script.ways import SCRIPTS, plain, report_of, watched

LINES = [line.strip() for line in (SCRIPTS / "piled_up.py").read_text().splitlines()]
BACKWARD = LINES.index("loss.backward()") + 1


def test_a_healthy_script_is_the_same_to_the_last_bit_and_found_healthy(tmp_path: Path) -> None:
    added = report_of(watched("healthy.py", runs=tmp_path), plain("healthy.py"))
    assert "✓ HEALTHY" in added
    assert "healthy.py · 40 steps in" in added


def test_a_sick_script_is_named_with_its_line_and_its_own_exit_code_wins(tmp_path: Path) -> None:
    for file in SCRIPTS.glob("*.py"):
        shutil.copy(file, tmp_path)
    file, options = tmp_path / "report.json", ("--json", "report.json", "--fail-on", "error")
    ended = watched("piled_up.py", "5", folder=tmp_path, options=options)
    assert ended.code == 5
    assert ended.errors.splitlines()[3].startswith("✗ missing-zero-grad")
    assert f"piled_up.py:{BACKWARD}   loss.backward()" in ended.errors
    saved = json.loads(file.read_text())
    assert saved["source"] == "run"
    assert len(list((tmp_path / ".sleuth" / "runs").iterdir())) == 1
    assert saved["culprits"][0]["location"] == {"file": "piled_up.py", "line": BACKWARD, "text": "loss.backward()"}


@pytest.mark.long
def test_after_enough_steps_the_script_is_left_and_findings_may_fail_it(tmp_path: Path) -> None:
    ended = watched("piled_up.py", "5", options=("--steps", "20", "--fail-on", "error", "--quiet"), runs=tmp_path)
    assert (ended.out, ended.errors, ended.code) == ("", "", 1)
    (run,) = tmp_path.iterdir()
    assert sleuth.load(run).steps == 20


def test_a_finding_that_is_meant_is_allowed_on_its_line_and_the_reason_is_shown(tmp_path: Path) -> None:
    ended = watched("piled_up.py", "0", "meant", options=("--fail-on", "error"), runs=tmp_path)
    assert ended.code == 0
    assert f"missing-zero-grad: gradients pile up on purpose (piled_up.py:{BACKWARD - 2})" in ended.errors
    assert "✗ missing-zero-grad" not in ended.errors


@pytest.mark.long
def test_a_script_that_raises_shows_its_own_traceback_and_then_what_failed(tmp_path: Path) -> None:
    added = report_of(watched("piled_up.py", "0", "crash", runs=tmp_path), plain("piled_up.py", "0", "crash"))
    assert "✗ forward-fails" in added
    assert "material.py" in added, "the innermost line of the user's"


@pytest.mark.long
def test_a_script_that_was_killed_is_told_of_from_its_run(tmp_path: Path) -> None:
    ended = watched("piled_up.py", "0", "kill", runs=tmp_path)
    assert ended.code == -signal.SIGKILL
    assert ended.errors == ""
    (run,) = tmp_path.iterdir()
    report = sleuth.load(run)
    assert report.subject == "piled_up.py"
    assert report.culprits[0].finding.name == "missing-zero-grad"
    assert any("did not come to its end" in note for note in report.notes)
