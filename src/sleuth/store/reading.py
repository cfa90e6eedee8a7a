"""Reads a run back, also while it is being written and after its process was killed."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Frame, Observation, Role
from sleuth.core.statistics import COLUMNS, EXPONENT_BINS, unpack
from sleuth.store.codec import decode
from sleuth.store.schema import VERSION


def open_run(path: Path) -> "Run":
    """`path`: the folder of a run, or its file."""
    if path.is_dir():
        found = sorted(path.glob("*.sqlite"))
        if not found:
            raise UnusableInput(f"{path} holds no run: there is no .sqlite file in it.")
        path = found[0]
    return Run(path)


class Run:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5.0)
            self.facts = {name: json.loads(value) for name, value in self._database.execute("SELECT name, value FROM facts")}
        except sqlite3.Error as error:
            raise UnusableInput(f"{path} cannot be read as a run of sleuth: {error}") from None
        found = self.facts.get("schema")
        if found is None or found > VERSION:
            raise UnusableInput(f"{path} was written by a newer sleuth (schema {found}, this one reads up to {VERSION}).")

    def observations(self) -> Iterator[Observation]:
        """In the order in which they were seen."""
        paths = {number: tuple(json.loads(text)) for number, text in self._rows("SELECT number, value FROM paths")}
        log = self._rows("SELECT number, body FROM log ORDER BY number")
        frames = self._rows("SELECT number, step, role, paths, sampled, body, exponents FROM frames ORDER BY number")
        row, frame = next(log, None), next(frames, None)
        while row is not None or frame is not None:
            if frame is None or (row is not None and row[0] < frame[0]):
                assert row is not None
                yield decode(row[1])
                row = next(log, None)
            else:
                yield _frame(frame, paths)
                frame = next(frames, None)

    def close(self) -> None:
        self._database.close()

    def _rows(self, query: str) -> Iterator[Any]:
        with closing(self._database.cursor()) as cursor:
            yield from cursor.execute(query)


def _frame(row: Any, paths: dict[int, tuple[str, ...]]) -> Frame:
    _, step, role, number, sampled, body, exponents = row
    table = unpack(np.frombuffer(body, dtype="<f4").reshape(-1, len(COLUMNS)))
    bins = None if exponents is None else np.frombuffer(exponents, dtype="<i4").reshape(-1, EXPONENT_BINS)
    return Frame(step, Role(role), paths[number], table, bins, sampled)
