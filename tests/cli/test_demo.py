"""`sleuth demo`: a broken training, named at its own line."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sleuth.cli import main
from sleuth.cli.demo import ORIGINAL

FILE = Path(".sleuth", "demo", "digits.py")
TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
SOFTMAX = "return torch.softmax(scores, dim=1)"


@pytest.fixture
def demo(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "digits", raising=False)
    yield lambda *words: CliRunner().invoke(main, ["demo", *words])
    sys.modules.pop("digits", None)


def test_the_demo_names_its_one_cause_at_the_right_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sleuth", "demo", "--json", "r.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    culprits = json.loads((tmp_path / "r.json").read_text())["culprits"]
    assert [c["name"] for c in culprits] == ["double-softmax"]
    place = culprits[0]["location"]
    assert (place["file"], place["text"]) == (str(FILE), SOFTMAX)
    assert (tmp_path / FILE).read_text().splitlines()[place["line"] - 1].strip() == SOFTMAX
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert f"sleuth examine {FILE}:training" in done.stderr
    answer = done.stdout[done.stdout.index("✗") : done.stdout.index("\n\nData")]
    assert answer in TUTORIAL.read_text(), f"docs/tutorial.md shows another answer than this one:\n{answer}"


def test_the_repaired_demo_is_healthy_and_stays_repaired(demo) -> None:
    FILE.parent.mkdir(parents=True)
    repaired = ORIGINAL.read_text().replace(SOFTMAX, "return scores")
    FILE.write_text(repaired)
    result = demo("--json", "r.json")
    assert "examined as it is now" in result.stderr
    table = json.loads(Path("r.json").read_text())
    assert (table["status"], table["findings"]) == ("healthy", []), result.stdout
    assert FILE.read_text() == repaired


def test_the_demo_says_which_package_to_install(demo, monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "sklearn" else find(name, *more))
    result = demo()
    assert result.exit_code == 2
    assert "the demo needs scikit-learn: pip install 'sleuth[demo]'" in result.stderr
    assert not FILE.exists()
