"""Runs of another time, of a stranger, or of nobody."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sleuth
from sleuth.core.observation import Frame, Role, Settings, Step
from sleuth.core.statistics import pack
from sleuth.store.codec import encode
from sleuth.store.reading import Run
from sleuth.store.schema import VERSION
from sleuth.store.writing import Writer

FIRST = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE paths (number INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE log (number INTEGER PRIMARY KEY, step INTEGER, kind TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE frames (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, role TEXT NOT NULL, paths INTEGER NOT NULL,
    sampled INTEGER NOT NULL, body BLOB NOT NULL, exponents BLOB
);
INSERT INTO facts VALUES ('schema', '1'), ('run', '{"framework": "torch", "subject": "old"}');
INSERT INTO paths VALUES (0, '["a", "b"]');
"""


def test_a_run_of_the_first_schema_is_read(tmp_path: Path) -> None:
    table, bins = np.arange(18.0).reshape(2, 9), np.arange(64, dtype="<i4").reshape(2, 32)
    steps = [Step(i, 1.0 / (i + 1), calls=("forward", "backward", "step")) for i in range(3)]
    database = sqlite3.connect(tmp_path / "rank0.sqlite")
    database.executescript(FIRST)
    for number, step in enumerate(steps, start=1):
        database.execute("INSERT INTO log VALUES (?, ?, 'Step', ?)", (number, step.step, encode(step)))
    packed = pack(table).astype("<f4").tobytes()
    database.execute("INSERT INTO frames VALUES (4, 2, 'weight', 0, 0, ?, ?)", (packed, bins.tobytes()))
    database.commit()
    database.close()
    with Run(tmp_path / "rank0.sqlite") as run:
        *found, frame = run.observations()
    assert found == steps
    assert (frame.paths, frame.role) == (("a", "b"), Role.WEIGHT)
    assert frame.table == pytest.approx(table, rel=1e-6)
    assert np.array_equal(frame.exponents, bins)
    report = sleuth.load(tmp_path)
    assert (report.steps, report.subject) == (3, "old")
    assert report.curves()["loss"].values.tolist() == [s.loss for s in steps]
    assert report.statistics("weight").paths == ("a", "b")


SECOND = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE texts (number INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE log (number INTEGER PRIMARY KEY, step INTEGER, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE steps (
    number INTEGER PRIMARY KEY, step INTEGER, optimiser INTEGER, loss REAL, lr REAL, gradient_norm REAL, clipped_norm REAL,
    memory_bytes INTEGER, seconds BLOB NOT NULL, rest INTEGER NOT NULL
);
CREATE TABLE frames (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, role TEXT NOT NULL, paths INTEGER NOT NULL,
    sampled INTEGER NOT NULL, body BLOB NOT NULL, exponents BLOB
);
INSERT INTO facts VALUES ('schema', '2'), ('run', '{"framework": "torch", "subject": "old"}');
"""


def test_a_run_of_the_second_schema_is_read(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "rank0.sqlite")
    database.executescript(SECOND)
    rest = {"calls": ("forward", "step"), "counts": {"forward": 1}, "training": True, "unusual": False, "heard": True}
    odd = {**rest, "memory_bytes": 2**70}
    for number, about in enumerate((rest, odd)):
        database.execute("INSERT INTO texts VALUES (?, ?)", (number, encode({**about, "phases": ("step",)})))
        row = (number, number, 0, 0.5, 0.1, 2.0, None, None, np.float64(0.25).tobytes(), number)
        database.execute(f"INSERT INTO steps VALUES ({', '.join('?' * 10)})", row)
    database.commit()
    database.close()
    with Run(tmp_path / "rank0.sqlite") as run:
        found = list(run.observations())
    step = Step(0, 0.5, 0.1, 2.0, ("forward", "step"), {"forward": 1}, seconds={"step": 0.25})
    assert found == [step, replace(step, step=1)]


def test_a_run_of_a_newer_sleuth_is_refused_with_its_number(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write_fact("schema", 99)
    writer.close()
    with pytest.raises(sleuth.UnusableInput, match=f"schema 99; this one reads up to {VERSION}"):
        Run(tmp_path / "run.sqlite")


def test_kinds_of_observations_that_are_not_known_are_left_out_and_named(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write([Step(1, 0.5), Settings("torch", None, None, None)])
    writer.commit(now=True)
    writer._database.execute("UPDATE log SET kind = 'Prophecy', body = '{\".is\": \"Prophecy\"}'")
    writer.close()
    report = sleuth.load(tmp_path / "run.sqlite")
    assert report.steps == 1
    assert any("1 Prophecy" in note for note in report.notes), report.notes


def test_something_else_than_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").write_text("no database")
    with pytest.raises(sleuth.UnusableInput, match="cannot be read"):
        sleuth.load(tmp_path / "run.sqlite")
    sqlite3.connect(tmp_path / "other.sqlite").executescript("CREATE TABLE facts (name TEXT, value TEXT)").connection.close()
    with pytest.raises(sleuth.UnusableInput, match="does not say its schema"):
        sleuth.load(tmp_path / "other.sqlite")
    with pytest.raises(sleuth.UnusableInput, match="no file"):
        sleuth.load(tmp_path / "missing.sqlite")
    (tmp_path / "empty").mkdir()
    with pytest.raises(sleuth.UnusableInput, match="holds no run"):
        sleuth.load(tmp_path / "empty")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE steps SET seconds = x'00'",
        "UPDATE steps SET rest = 77",
        "UPDATE texts SET value = '[' || value",
        'UPDATE texts SET value = \'{".is": "Popen", "args": "ls"}\'',
        "UPDATE frames SET body = x'0000'",
        "UPDATE frames SET exponents = x'00'",
        "UPDATE frames SET paths = 99",
        "UPDATE facts SET value = '[1]' WHERE name = 'run'",
        "DROP TABLE steps",
    ],
)
def test_a_damaged_run_is_refused_and_does_nothing(damage: str, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write_fact("run", {"subject": "s"})
    writer.write(
        [Step(1, 0.5, seconds={"step": 1.0}), Frame(1, Role.WEIGHT, ("a",), np.ones((1, 9)), np.ones((1, 32), np.int32))]
    )
    writer.commit(now=True)
    writer._database.execute(damage)
    writer.close()
    with pytest.raises(sleuth.UnusableInput, match=r"damaged|cannot be read"):
        sleuth.load(tmp_path / "run.sqlite")


def test_a_run_that_was_cut_in_half_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write([Frame(i, Role.WEIGHT, ("a",) * 100, np.ones((100, 9))) for i in range(200)])
    writer.close()
    whole = (tmp_path / "run.sqlite").read_bytes()
    (tmp_path / "half.sqlite").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(sleuth.UnusableInput, match=r"damaged|cannot be read"):
        sleuth.load(tmp_path / "half.sqlite")


def test_the_facts_of_a_run_are_plain_json(tmp_path: Path) -> None:
    Writer(tmp_path / "run.sqlite").close()
    database = sqlite3.connect(tmp_path / "run.sqlite")
    facts = {name: json.loads(value) for name, value in database.execute("SELECT * FROM facts")}
    database.close()
    assert facts["schema"] == VERSION


def test_a_run_is_read_where_nothing_can_be_written_beside_it(tmp_path: Path) -> None:
    """SQLite keeps a file of its own beside one in write-ahead mode, if it can."""
    writer = Writer(tmp_path / "run.sqlite")
    writer.write([Step(1, 0.5)])
    writer.commit(now=True)
    writer._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    # Too long a name for any other file beside it: that also holds for root, who may write anywhere.
    alone = tmp_path / ("r" * 246 + ".sqlite")
    alone.write_bytes((tmp_path / "run.sqlite").read_bytes())
    writer.close()
    with Run(alone) as run:
        assert [o.step for o in run.observations()] == [1]
