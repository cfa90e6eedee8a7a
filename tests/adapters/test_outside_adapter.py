"""A package of somebody else's adds a framework: it is built, installed, and passes the rules that our own adapters pass."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.core.contract.adapter import Adapter, Describes, Discovers, Steps, Watches
from sleuth.testing import conformance

PACKAGE = Path(__file__).parents[1] / "outside_adapter"
SOURCES = Path(__file__).parents[2] / "src"

SCRIPT = """
import numpy as np
import abacus

np.random.seed(0)
rng = np.random.default_rng(1)
x = rng.normal(size=(256, 12)).astype(np.float32)
y = (x[:, :3] @ rng.normal(size=(3, 3))).argmax(1)
model = abacus.Sequential(abacus.Linear(12, 16), abacus.ReLU(), abacus.Linear(16, 3))
optimiser = abacus.SGD(model.parameters(), lr=0.1)
loader = abacus.Loader(x, y)
for epoch in range(10):
    for inputs, target in loader:
        {clear}
        loss = abacus.cross_entropy(model(inputs), target)
        loss.backward()
        optimiser.step()
print("trained to the end")
"""
WATCHED = SCRIPT.replace(
    "for epoch", "import sleuth\nw = sleuth.watch(model, optimiser, every=1, directory=None, quiet=True)\nfor epoch", 1
)
REPORTED = """
w.close()
report = w.report()
print(report.framework, report.steps, [c.finding.name for c in report.culprits], [f.fix for f in report.findings])
"""


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package was installed into. It is built from a copy: a build leaves files beside its sources."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(PACKAGE, folder / "package")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*pip, "--target", str(folder / "site"), str(folder / "package")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def python(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(installed), str(SOURCES)))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)


def test_it_passes_the_conformance_suite(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE / "conformance", tmp_path / "conformance")
    done = python(installed, tmp_path / "conformance", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    rules = len([rule for rule in conformance.rules() if rule.capability in (Adapter, Describes, Steps, Watches, Discovers)])
    assert f"{rules + 2} passed" in done.stdout


@pytest.mark.parametrize(
    ("clear", "culprits", "advice"),
    [
        ("pass", "['missing-zero-grad']", "Call optimiser.zero_grad() before each loss.backward()."),
        ("optimiser.zero_grad()", "[]", ""),
    ],
    ids=["sick", "healthy"],
)
def test_a_watch_tells_sick_from_healthy_in_the_frameworks_own_words(
    installed: Path, tmp_path: Path, clear: str, culprits: str, advice: str
) -> None:
    (tmp_path / "train.py").write_text(WATCHED.format(clear=clear) + REPORTED)
    done = python(installed, tmp_path, "train.py")
    assert done.returncode == 0, done.stderr
    assert f"abacus 80 {culprits}" in done.stdout
    assert advice in done.stdout


@pytest.mark.parametrize(
    ("clear", "said"), [("pass", "missing-zero-grad"), ("optimiser.zero_grad()", "nothing")], ids=["sick", "healthy"]
)
def test_sleuth_run_finds_the_training_of_a_script(installed: Path, tmp_path: Path, clear: str, said: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(clear=clear))
    done = python(installed, tmp_path, "-m", "sleuth", "run", "train.py")
    assert "trained to the end" in done.stdout, done.stdout + done.stderr
    assert said in (done.stdout + done.stderr).lower()
    assert "80 steps" in done.stdout + done.stderr


def test_a_limit_of_steps_ends_the_script(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(clear="optimiser.zero_grad()"))
    done = python(installed, tmp_path, "-m", "sleuth", "run", "--steps", "10", "train.py")
    assert "trained to the end" not in done.stdout
    assert "10 steps" in done.stdout + done.stderr


def test_an_adapter_that_cannot_be_imported_is_done_without(installed: Path, tmp_path: Path) -> None:
    """Its framework is there; ours go on, and it is said."""
    broken = tmp_path / "site"
    shutil.copytree(installed, broken)
    (broken / "sleuth_abacus" / "__init__.py").write_text("raise ImportError('it was made for another sleuth')\n")
    (tmp_path / "train.py").write_text(SCRIPT.format(clear="pass"))
    done = python(broken, tmp_path, "-m", "sleuth", "run", "train.py")
    assert "trained to the end" in done.stdout, done.stdout + done.stderr
    assert "abacus could not be listened to: ImportError: it was made for another sleuth" in done.stdout + done.stderr
    (tmp_path / "watch.py").write_text("import abacus, sleuth\nsleuth.watch(abacus.Array(0.0), None)\n")
    done = python(broken, tmp_path, "watch.py")
    assert "RuntimeWarning: sleuth does without its adapter for abacus: ImportError" in done.stderr
    assert "The adapter for abacus could not be used: ImportError: it was made for another sleuth" in done.stderr
