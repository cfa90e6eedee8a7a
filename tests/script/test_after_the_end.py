"""What happens between the last line of a script and its report."""

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import sleuth
import sleuth.session.script as running
from sleuth.core.errors import UnusableInput
from sleuth.script.options import require_limits
from sleuth.views import progress
from tests.script.test_discovery import X, batches, heard, mlp, plain_script, train
from tests.script.ways import watched


def test_a_crash_after_the_last_training_is_told_of_in_the_report_that_is_spoken_of(tmp_path: Path, monkeypatch) -> None:
    def script() -> None:
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        for x, y in batches(24):
            functional.cross_entropy(model(x), y).backward()
            optimiser.step()
        monkeypatch.setattr(running, "Watch", None)  # the next training cannot be watched, and the first is over
        train(model, torch.optim.SGD([*model.parameters(), torch.zeros(1, requires_grad=True)], 0.1), 2)
        model(X[:5, :60])

    session = running.Session("train.py", running.Options(directory=tmp_path, budget=0))
    session.attend("torch")
    try:
        script()
    except RuntimeError as error:
        session.end(error)
    names = {finding.name for finding in session.main().report.findings}
    assert {"missing-zero-grad", "forward-fails"} <= names
    assert {finding.name for finding in sleuth.load(session.main().folder).findings} == names


def test_a_budget_of_nothing_means_no_experiments_after_the_end(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    ended = watched("healthy.py", options=("--budget", "0", "--json", str(file)), runs=tmp_path / "runs")
    assert ended.code == 0
    reasons = {entry["name"]: entry["reason"] for entry in json.loads(file.read_text())["not_examined"]}
    assert "cannot-overfit-one-batch" in reasons
    with pytest.raises(UnusableInput, match="--budget -1 is not a number of seconds"):
        require_limits(every=None, overhead=0.02, steps=None, budget=-1)


def test_an_interrupt_during_the_experiments_leaves_the_report_so_far(tmp_path: Path, monkeypatch) -> None:
    told: list[str] = []

    @contextlib.contextmanager
    def shown(wanted: bool | None) -> Iterator[Callable[[str], None]]:
        def tell(text: str) -> None:
            told.append(text)
            if len(told) == 8:
                signal.raise_signal(signal.SIGINT)

        yield tell

    monkeypatch.setattr(progress, "shown", shown)
    # A shell that runs something in the background makes it deaf to this signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        report = heard(plain_script, tmp_path, budget=None).main().report
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(told) == 8, "nothing is begun afterwards"
    assert "Ctrl-C" in told[0]
    assert any("interrupted while" in note for note in report.notes)
    assert any("interrupted" in reason for reason in report.not_examined.values())
    assert "missing-zero-grad" in report.clear
