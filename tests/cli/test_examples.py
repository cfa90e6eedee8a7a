"""The examples do what their first lines say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.api import examine_subject
from sleuth.cli.factory import load

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_has_the_illness_that_it_promises(file: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    promised = re.search(r"sleuth names: ([\w-]+)", file.read_text())
    assert promised, f"{file.name} does not say what sleuth names"
    report = examine_subject(load(f"{file}:training").subject, progress=False)
    assert report.culprits[0].finding.name == promised[1], report.to_text()


def test_the_example_for_python_runs() -> None:
    file = next(f for f in EXAMPLES if f.stem == "in_python")
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=120, check=True)
    assert "Not trained: first see to" in done.stdout
