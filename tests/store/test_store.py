"""What was seen comes back as it was, after every kind of end."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import sleuth
import sleuth.live
from sleuth.core.location import Location
from sleuth.core.observation import (
    Absent,
    Call,
    Evaluation,
    Frame,
    Layer,
    Observation,
    Role,
    Settings,
    Split,
    Step,
    Units,
)
from sleuth.core.statistics import pack, unpack
from sleuth.core.trial import Overfit
from sleuth.store.codec import decode, encode
from sleuth.store.reading import Run
from sleuth.store.writing import Writer
from tests.watch.scenarios import adam

TABLE = np.random.default_rng(0).lognormal(0, 5, (3, 9))
THINGS = [
    Step(3, 0.5, 1e-3, calls=("zero_grad", "forward", "backward", "step"), seconds={"step": 0.01}),
    Step(4, None),
    Call("backward", 0, Location("train.py", 12, "loss.backward()")),
    Evaluation(5, Split.VALIDATION, {"loss": float("inf"), "accuracy": 0.5}),
    Absent(Role.GRADIENT, "nobody asked"),
    Absent(Step, "no loop"),
    Settings("torch", None, "Adam", 1e-3, {"betas": (0.9, 0.999)}),
    Overfit(4, 10, 0.0, "zero", (1.0, 0.5), 0.1),
    Layer("net.0", "Linear", "linear", {"in": 3}),
]


@pytest.mark.parametrize("thing", THINGS, ids=lambda t: type(t).__name__)
def test_what_was_seen_comes_back_equal(thing: object) -> None:
    assert decode(encode(thing)) == thing


def test_arrays_come_back_equal() -> None:
    units = Units(1, "relu", "activation", "relu", 8, np.arange(4), np.zeros(4), np.ones(4, dtype=np.float32))
    back = decode(encode(units))
    for name in ("nonzero", "min", "max"):
        assert np.array_equal(getattr(back, name), getattr(units, name))
        assert getattr(back, name).dtype == getattr(units, name).dtype


def test_nothing_but_observations_can_be_built() -> None:
    with pytest.raises(KeyError):
        decode('{".is": "Popen", "args": "ls"}')


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_packing_keeps_the_scale_of_the_values(scale: float) -> None:
    row = np.array([[100.0, scale, 100 * scale**2, -scale, scale, 100 * scale, 3.0, 2.0, 1.0]])
    assert unpack(pack(row)) == pytest.approx(row, rel=1e-6)


def test_observations_come_back_in_their_order(tmp_path: Path) -> None:
    frame = Frame(2, Role.WEIGHT, ("a", "b", "c"), unpack(pack(TABLE)), np.ones((3, 32), dtype=np.int32), 1024)
    writer = Writer(tmp_path / "run.sqlite")
    given: list[Observation] = [THINGS[0], frame, THINGS[1], frame, THINGS[2]]
    writer.write(given[:2])
    writer.write(given[2:])
    writer.close()
    found = list(Run(tmp_path / "run.sqlite").observations())
    assert [type(o) for o in found] == [type(o) for o in given]
    assert found[0] == given[0]
    assert np.array_equal(found[1].table, frame.table)
    assert (found[1].paths, found[1].sampled, found[1].exponents.sum()) == (frame.paths, 1024, 96)


def watched(folder: Path, steps: int = 30) -> tuple[sleuth.live.Watch, sleuth.Report]:
    torch.manual_seed(0)
    training = adam()
    with sleuth.watch(training.model, training.optimisers, directory=folder, quiet=True, every=1) as w:
        for _ in islice(training.loop(), steps):
            pass
    return w, w.report()


def test_a_replay_says_what_live_said(tmp_path: Path) -> None:
    _, live = watched(tmp_path)
    (run,) = tmp_path.iterdir()
    again = sleuth.load(run)
    assert again.source == "replay"
    assert [f.name for f in again.findings] == [f.name for f in live.findings]
    assert (again.clear, dict(again.not_examined), again.steps) == (live.clear, dict(live.not_examined), live.steps)
    assert again.overhead == live.overhead


def test_a_folder_that_cannot_be_written_does_not_stop_the_training(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    w, report = watched(blocked)
    assert report.steps == 30
    assert any("are not in" in note for note in w.notes), w.notes


def test_a_locked_file_does_not_stop_the_training(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.commit(now=True)
    writer._database.execute("COMMIT")
    other = sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    writer._database.execute("PRAGMA busy_timeout=50")
    writer.write([THINGS[0]])
    other.execute("ROLLBACK")
    other.close()
    writer.close()
    assert writer.trouble is not None
    assert "locked" in writer.trouble
    assert writer.lost == 1


def test_a_run_of_a_newer_sleuth_is_refused_with_its_number(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write_fact("schema", 99)
    writer.close()
    with pytest.raises(sleuth.UnusableInput, match="schema 99"):
        Run(tmp_path / "run.sqlite")


def test_something_else_than_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").write_text("no database")
    with pytest.raises(sleuth.UnusableInput, match="cannot be read"):
        sleuth.load(tmp_path / "run.sqlite")


ENDLESS = """
    import sys, torch, sleuth
    from tests.watch.scenarios import adam
    training = adam()
    w = sleuth.watch(training.model, training.optimisers, directory=sys.argv[1], quiet=True)
    for i, _ in enumerate(training.loop()):
        if i % 50 == 0:
            print(i, flush=True)
"""


def test_a_killed_run_opens_and_lost_no_more_than_the_last_moments(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ENDLESS), str(tmp_path)],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    seen: list[tuple[float, int]] = []
    began = time.monotonic()
    while time.monotonic() - began < 4:
        seen.append((time.monotonic(), int(process.stdout.readline())))
        if len(seen) == 1:
            began = time.monotonic()
    process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    process.wait()
    process.stdout.close()
    (run,) = tmp_path.iterdir()
    report = sleuth.load(run)
    # Written at least every second, and drained four times a second; a loaded machine may take a little longer.
    before = max((step for moment, step in seen if moment < killed - 2.0), default=0)
    assert before <= report.steps
    assert report.steps > 0
    assert any("did not come to its end" in note for note in report.notes)
