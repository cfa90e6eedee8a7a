"""A folder of runs: two that differ in their rate, one like the first, and a sick one whose name a page must not obey."""

import shutil
from pathlib import Path

import pytest

from tests.ui.training import HOSTILE, train

SLOW, FAST, AGAIN, SICK = "20260101-000000-slow", "20260101-000001-fast", "20260101-000002-again", f"20260101-000003-{HOSTILE}"
STEPS = 40


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ui") / "runs"
    for name, lr, clear in ((SLOW, 0.1, True), (FAST, 0.3, True), (SICK, 0.5, False)):
        into = folder.parent / "made"
        train(into, HOSTILE, lr, STEPS, 0.0, clear)
        (made,) = into.iterdir()
        folder.mkdir(exist_ok=True)
        made.rename(folder / name)
    shutil.copytree(folder / SLOW, folder / AGAIN)
    return folder
