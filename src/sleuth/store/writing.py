"""Writes what was seen. Runs off the training thread; when the disk says no, the training goes on and the report says so."""

import json
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sleuth.core.observation import Frame, Observation
from sleuth.core.statistics import pack
from sleuth.store.codec import encode
from sleuth.store.schema import TABLES, VERSION

COMMIT_SECONDS = 1.0


class Writer:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble: str | None = None  # why nothing is written any more
        self.lost = 0  # observations that are not on disk
        self._number = 0
        self._paths: dict[tuple[str, ...], int] = {}
        self._committed = time.monotonic()
        self._database: sqlite3.Connection | None = None
        self._guarded(self._open)

    def write(self, observations: Iterable[Observation]) -> None:
        waiting = list(observations)
        if self.trouble is not None:
            self.lost += len(waiting)
            return
        self._guarded(lambda: self._insert(waiting))
        if self.trouble is not None:
            self.lost += len(waiting)

    def write_fact(self, name: str, value: Any) -> None:
        text = json.dumps(value)
        self._guarded(lambda: self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", [(name, text)]))

    def commit(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._committed >= COMMIT_SECONDS:
            self._guarded(self._commit)

    def close(self) -> None:
        self.commit(now=True)
        if self._database is not None:
            self._guarded(self._database.close)
            self._database = None

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Used by one thread at a time; the session's lock sees to that.
        database = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=1.0)
        # A killed process loses nothing that was handed to the system; only a power cut could.
        database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;" + TABLES)
        database.execute("BEGIN")
        self._database = database
        self.write_fact("schema", VERSION)
        self._commit()

    def _commit(self) -> None:
        if self._database is not None:
            self._database.execute("COMMIT")
            self._database.execute("BEGIN")
        self._committed = time.monotonic()

    def _insert(self, observations: list[Observation]) -> None:
        log, frames = [], []
        for seen in observations:
            self._number += 1
            if isinstance(seen, Frame):
                exponents = None if seen.exponents is None else seen.exponents.astype("<i4").tobytes()
                body = pack(seen.table).astype("<f4").tobytes()
                frames.append(
                    (self._number, seen.step, seen.role.value, self._path_number(seen.paths), seen.sampled, body, exponents)
                )
            else:
                log.append((self._number, getattr(seen, "step", None), type(seen).__name__, encode(seen)))
        self._run("INSERT INTO log VALUES (?, ?, ?, ?)", log)
        self._run("INSERT INTO frames VALUES (?, ?, ?, ?, ?, ?, ?)", frames)

    def _path_number(self, paths: tuple[str, ...]) -> int:
        if paths not in self._paths:
            self._paths[paths] = len(self._paths)
            self._run("INSERT INTO paths VALUES (?, ?)", [(self._paths[paths], json.dumps(paths))])
        return self._paths[paths]

    def _run(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if self._database is not None and rows:
            self._database.executemany(statement, rows)

    def _guarded(self, action: Any) -> None:
        if self.trouble is not None:
            return
        try:
            action()
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"{type(error).__name__}: {error}"
