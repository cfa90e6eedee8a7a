"""Writes what was seen. Runs off the training thread; when the disk says no, the training goes on and the report says so."""

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.core.observation import Frame, Observation, Step
from sleuth.store.codec import encode
from sleuth.store.rows import Row, StepRows, frame_row
from sleuth.store.schema import TABLES, VERSION

# With the time between two drains and some delay it stays below the second that a killed process may lose.
COMMIT_SECONDS = 0.3
# A full disk or a locked file may come free again.
RETRY_SECONDS = 2.0
# What waits for that; beyond it, what is new is lost.
MOST_WAITING_BYTES = 32 << 20
# A loop whose steps all differ must not fill the memory; texts that are forgotten are written once more.
MOST_TEXTS = 4096
# About what the row of a step takes.
STEP_BYTES = 120
# Whoever reads does not block us; somebody who locks the whole file must not hold up the thread either.
LOCK_SECONDS = 0.1
# Tables of statistics are some kilobytes each: on pages of SQLite's usual size a third would stay empty.
PAGE_BYTES = 1 << 14
CHECKPOINT_PAGES = 256

INSERTS = {
    "texts": "INSERT INTO texts VALUES (?, ?)",
    "log": "INSERT INTO log VALUES (?, ?, ?, ?)",
    "steps": f"INSERT INTO steps VALUES ({', '.join('?' * 8)})",
    "frames": f"INSERT INTO frames VALUES ({', '.join('?' * 7)})",
    "facts": "INSERT OR REPLACE INTO facts VALUES (?, ?)",
}


class Writer:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble: str | None = None  # why something is not on disk
        self._given_up = 0  # observations that were not kept either
        self._number = 0
        self._texts: dict[Hashable, int] = {}
        self._step_rows = StepRows(self._keep)
        self._last_text = 0
        self._waiting: dict[str, list[Row]] = {table: [] for table in INSERTS}
        self._bytes = 0
        self._database: sqlite3.Connection | None = None
        self._next = 0.0
        self.write_fact("schema", VERSION)
        self.commit(now=True)

    @property
    def lost(self) -> int:
        """Observations that are not on disk, those that still may get there included."""
        waiting = sum(len(self._waiting[table]) for table in ("log", "steps", "frames"))
        return self._given_up + (waiting if self.trouble is not None else 0)

    def write(self, observations: Iterable[Observation], packed: Mapping[int, np.ndarray] | None = None) -> None:
        """Takes them; `commit` brings them to the disk. `packed`: frames, by their id, in the form that is written."""
        for seen in observations:
            self._number += 1
            if self._bytes > MOST_WAITING_BYTES:
                self._given_up += 1
            elif isinstance(seen, Frame):
                row = (self._number, *frame_row(seen, self._keep, (packed or {}).get(id(seen))))
                self._waiting["frames"].append(row)
                self._bytes += STEP_BYTES + seen.table.nbytes
            elif isinstance(seen, Step):
                self._waiting["steps"].append((self._number, *self._step_rows.row(seen)))
                self._bytes += STEP_BYTES
            else:
                self._put("log", (self._number, getattr(seen, "step", None), type(seen).__name__, encode(seen)))

    def write_fact(self, name: str, value: Any) -> None:
        self._put("facts", (name, json.dumps(value)))

    def commit(self, *, now: bool = False) -> None:
        if not now and time.monotonic() < self._next:
            return
        try:
            self._write()
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"{type(error).__name__}: {error}"
            self._next = time.monotonic() + RETRY_SECONDS
        else:
            self.trouble = self.trouble if self._given_up else None
            self._next = time.monotonic() + COMMIT_SECONDS

    def close(self) -> None:
        self.commit(now=True)
        if self._database is None:
            return
        # One file that can be copied, and read where nothing can be written. Somebody who reads now may prevent it.
        with contextlib.suppress(sqlite3.Error):
            self._database.execute("PRAGMA journal_mode=DELETE")
        with contextlib.suppress(sqlite3.Error):
            self._database.close()
        self._database = None

    def _write(self) -> None:
        if not any(self._waiting.values()):
            return
        if self._database is None:
            self._database = _open(self.path)
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            database.execute(INSERTS["facts"], ("written", json.dumps(time.time())))
            for table, rows in self._waiting.items():
                database.executemany(INSERTS[table], rows)
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # some errors end it by themselves
                database.execute("ROLLBACK")
            raise
        for rows in self._waiting.values():
            rows.clear()
        self._bytes = 0

    def _put(self, table: str, row: Row) -> None:
        self._waiting[table].append(row)
        self._bytes += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)

    def _keep(self, key: Hashable, make: Callable[[], Any]) -> int:
        found = self._texts.get(key)
        if found is None:
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
            found = self._texts[key] = self._last_text = self._last_text + 1
            self._put("texts", (found, encode(make())))
        return found


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Used by one thread at a time; the watch's lock sees to that.
    database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=LOCK_SECONDS)
    try:
        # A killed process loses nothing that was handed to the system; only a power cut could.
        database.executescript(
            f"PRAGMA page_size={PAGE_BYTES}; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; "
            f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}; BEGIN;{TABLES}COMMIT;"
        )
    except sqlite3.Error:
        database.close()
        raise
    return database
