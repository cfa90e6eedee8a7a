"""A full disk, a folder that cannot be written, a file that somebody locked: the training goes on, and the report says so."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
import torch

import sleuth
import sleuth.session.watch
from sleuth.core.observation import Evaluation, Split, Step
from sleuth.store import writing
from sleuth.store.reading import Run
from sleuth.store.writing import Writer
from tests.watch.scenarios import adam

ROOT = Path(__file__).parents[2]
STEPS = 40

# Files of this process may not grow beyond a limit: every write behind it fails, as on a full disk.
FULL = """
    import json, resource, sys
    import torch
    from tests.store.test_trouble import report_of, trained
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    state, w = trained(sys.argv[1])
    print(json.dumps({"state": state, "lost": w.recorded.writer.lost, **report_of(w)}))
"""


def trained(folder: object, steps: int = STEPS) -> tuple[list[float], sleuth.session.watch.Watch | None]:
    """With None for a folder nothing watches."""
    torch.manual_seed(0)
    training = adam()
    if folder is None:
        list(islice(training.loop(), steps))
        return sums(training.model), None
    with sleuth.watch(training.model, training.optimisers, directory=folder, quiet=True, every=1) as w:
        list(islice(training.loop(), steps))
    return sums(training.model), w


def sums(model: torch.nn.Module) -> list[float]:
    return [p.double().sum().item() for p in model.parameters()]


def report_of(w: sleuth.session.watch.Watch) -> dict[str, object]:
    report = w.report()
    return {"steps": report.steps, "notes": report.notes, "text": report.to_text()}


def test_a_full_disk_does_not_stop_the_training(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "\n".join(line.strip() for line in FULL.splitlines()), str(tmp_path), str(1 << 18)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["state"] == trained(None)[0]
    assert told["steps"] == STEPS
    assert told["lost"] > 0
    (note,) = (n for n in told["notes"] if "are not in" in n)
    assert str(told["lost"]) in note
    assert "full" in note or "I/O" in note
    assert "are not in" in told["text"].replace("\n", " ")


def test_what_was_written_before_the_disk_was_full_can_be_read(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write([Step(1, 0.5)])
    writer.commit(now=True)
    pages = writer._database.execute("PRAGMA page_count").fetchone()[0]
    writer._database.execute(f"PRAGMA max_page_count={pages}")
    writer.write([Evaluation(2, Split.TRAIN, {"x" * 100_000: 1.0})])
    writer.commit(now=True)
    assert "full" in writer.trouble
    assert writer.lost == 1
    with Run(tmp_path / "run.sqlite") as run:
        assert [o.step for o in run.observations()] == [1]


def test_what_waited_is_written_when_the_disk_has_room_again(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    pages = writer._database.execute("PRAGMA page_count").fetchone()[0]
    writer._database.execute(f"PRAGMA max_page_count={pages}")
    given = [Step(1, 0.5), Evaluation(2, Split.TRAIN, {"x" * 100_000: 1.0}), Step(3, 0.4)]
    writer.write(given)
    writer.commit(now=True)
    assert writer.lost == 3
    writer._database.execute("PRAGMA max_page_count=1000000")
    writer.close()
    assert (writer.trouble, writer.lost) == (None, 0)
    with Run(tmp_path / "run.sqlite") as run:
        assert list(run.observations()) == given


def test_what_waits_for_the_disk_is_bounded_and_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_WAITING_BYTES", 10_000)
    (tmp_path / "file").write_text("in the way")
    writer = Writer(tmp_path / "file" / "run.sqlite")
    for step in range(1000):
        writer.write([Step(step, 0.5)])
        writer.commit(now=True)
    writer.close()
    assert writer.lost == 1000
    assert len(writer._waiting["steps"]) < 200


@pytest.mark.parametrize("place", ["below a file", "in /proc"])
def test_a_folder_that_cannot_be_made_does_not_stop_the_training(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("in the way")
    state, w = trained(tmp_path / "file" / "runs" if place == "below a file" else "/proc/runs")
    assert state == trained(None)[0]
    told = report_of(w)
    assert told["steps"] == STEPS
    assert any("are not in" in note for note in told["notes"]), told["notes"]


def test_a_locked_file_does_not_stop_the_training(tmp_path: Path) -> None:
    torch.manual_seed(0)
    training = adam()
    with sleuth.watch(training.model, training.optimisers, directory=tmp_path, quiet=True, every=1) as w:
        (run,) = tmp_path.iterdir()
        other = sqlite3.connect(run / "rank0.sqlite", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        list(islice(training.loop(), STEPS))
    assert sums(training.model) == trained(None)[0]
    told = report_of(w)
    assert any("locked" in note for note in told["notes"]), told["notes"]
    other.execute("ROLLBACK")
    other.close()
    assert sleuth.load(run).steps == 0


def test_a_lock_that_goes_away_costs_nothing(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    other = sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    writer.write([Step(1, 0.5)])
    began = time.monotonic()
    writer.commit(now=True)
    assert time.monotonic() - began < 2
    assert "locked" in writer.trouble
    assert writer.lost == 1
    other.execute("ROLLBACK")
    other.close()
    writer.write([Step(2, 0.4)])
    writer.close()
    assert (writer.trouble, writer.lost) == (None, 0)
    with Run(tmp_path / "run.sqlite") as run:
        assert [o.step for o in run.observations()] == [1, 2]
