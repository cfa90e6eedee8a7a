"""Reads a run back, also while it is being written and after its process was killed."""

import heapq
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sleuth.core.errors import UnusableInput
from sleuth.core.history import Group, History
from sleuth.core.observation import Frame, Observation, Role, Step
from sleuth.store.codec import decode, known_class
from sleuth.store.rows import NUMBERS, frame_of, step_of
from sleuth.store.schema import VERSION

STEPS = f"SELECT number, {', '.join(NUMBERS)}, seconds, rest FROM steps"
FRAMES = "SELECT number, step, role, paths, sampled, body, exponents FROM frames"
LOG = "SELECT number, kind, body FROM log"
# What a file that was cut, altered or made up can do to us while we read it.
DAMAGE = (sqlite3.Error, LookupError, ValueError, TypeError, AttributeError, RecursionError, OverflowError)

Made = Callable[[Any], Observation]


@dataclass(frozen=True)
class About:
    framework: str | None
    subject: str
    ended: bool  # False: it was killed, or is going on
    seconds: float
    overhead: dict[str, Any] | None
    notes: tuple[str, ...]


def files_of(path: Path) -> list[Path]:
    """The files of a run, one a process, by rank. `path`: the folder of a run, or one of its files."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.sqlite"), key=lambda file: [int(n) for n in re.findall(r"\d+", file.stem)])
    if not found:
        raise UnusableInput(f"{path} holds no run: there is no .sqlite file in it.")
    return found


class Run:
    """One file. Everything is read from one moment, however much is written meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unknown: dict[str, int] = {}  # kinds of observations that this sleuth does not know, and how many
        if not path.is_file():
            raise UnusableInput(f"there is no file {path}.")
        self._database = _open(path)
        try:
            self._database.execute("BEGIN")
            self.facts = {name: json.loads(value) for name, value in self._database.execute("SELECT name, value FROM facts")}
            self._refuse_foreign()
        except BaseException as error:
            self._database.close()
            if isinstance(error, DAMAGE):
                raise UnusableInput(f"{path} cannot be read as a run of sleuth: {error}") from None
            raise
        self._texts: dict[int, Any] = {}

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def about(self) -> About:
        with self.guarded():
            run, end = dict(self.facts.get("run", {})), dict(self.facts.get("end", {}))
            so_far = max(float(self.facts.get("written", 0)) - float(run.get("began", 0)), 0.0) if "began" in run else 0.0
            return About(
                framework=run.get("framework"),
                subject=str(run.get("subject", "")),
                ended=bool(end),
                seconds=float(end.get("seconds", so_far)),
                overhead=end.get("overhead"),
                notes=tuple(str(note) for note in end.get("notes", ())),
            )

    def recall(self, history: History) -> None:
        """Fills it as if every observation had been added in turn. Reads only those that it keeps."""
        with self.guarded():
            for what, group, numbers, query, made in self._kinds():
                history.recall(what, group, len(numbers), self._reader(numbers, query, made))

    def observations(self) -> Iterator[Observation]:
        """All of them, in the order in which they were seen."""
        tables = [(FRAMES, self._frame), (LOG, self._logged), *([(STEPS, self._step)] if self._has_steps else [])]
        with self.guarded():
            streams = [self._rows(f"{query} ORDER BY number", made) for query, made in tables]
            yield from (made(row) for row, made in heapq.merge(*streams, key=lambda pair: pair[0][0]))

    @contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except UnusableInput:
            raise
        except DAMAGE as error:
            raise UnusableInput(f"{self.path} is damaged: {type(error).__name__}: {error}") from None

    def rows(self, query: str, *values: Any) -> list[Any]:
        with closing(self._database.cursor()) as cursor:
            return cursor.execute(query, values).fetchall()

    def text(self, number: int) -> Any:
        if number not in self._texts:
            table = "texts" if self._version > 1 else "paths"
            ((found,),) = self.rows(f"SELECT value FROM {table} WHERE number = ?", number)
            self._texts[number] = decode(found)
        return self._texts[number]

    def logged(self, kind: str) -> Iterator[Any]:
        for row in self.rows(f"{LOG} WHERE kind = ? ORDER BY number", kind):
            yield self._logged(row)

    def frame(self, number: int) -> Frame:
        (row,) = self.rows(f"{FRAMES} WHERE number = ?", number)
        return self._frame(row)

    def steps(self) -> Iterator[Step]:
        yield from self.logged("Step")
        if self._has_steps:
            for row in self.rows(f"{STEPS} ORDER BY number"):
                yield self._step(row)

    def count_steps(self) -> int:
        tables = ["log WHERE kind = 'Step'", *(["steps"] if self._has_steps else [])]
        return sum(count for table in tables for (count,) in self.rows(f"SELECT count(*) FROM {table}"))

    def steps_after(self, number: int) -> Iterator[tuple[int, Step]]:
        """With their numbers: whoever follows a run that goes on asks again from the last one."""
        for row in self.rows(f"{LOG} WHERE kind = 'Step' AND number > ? ORDER BY number", number):
            yield row[0], decode(row[2])
        if self._has_steps:
            for row in self.rows(f"{STEPS} WHERE number > ? ORDER BY number", number):
                yield row[0], self._step(row)

    def notes_after(self, number: int, kinds: tuple[str, ...]) -> Iterator[tuple[int, Any]]:
        marks = ", ".join("?" * len(kinds))
        for row in self.rows(f"{LOG} WHERE kind IN ({marks}) AND number > ? ORDER BY number", *kinds, number):
            yield row[0], self._logged(row)

    def frames_after(self, number: int, role: Role, most: int) -> list[tuple[int, int, int, bytes]]:
        """Number, step, the text of its paths, and the packed statistics."""
        query = "SELECT number, step, paths, body FROM frames WHERE role = ? AND number > ? ORDER BY number LIMIT ?"
        return self.rows(query, role.value, number, most)

    def last_step(self) -> Step | None:
        latest = self.rows("SELECT max(number) FROM steps")[0][0] if self._has_steps else None
        return next((step for _, step in self.steps_after(latest - 1)), None) if latest is not None else None

    @property
    def _version(self) -> int:
        return int(self.facts["schema"])

    @property
    def _has_steps(self) -> bool:
        return self._version > 1

    def _kinds(self) -> Iterator[tuple[type[Observation] | Role, Group, list[int], str, Made]]:
        """What was seen, of whom, the numbers of its rows, and how one of them is read."""
        if self._has_steps:
            for (optimiser,) in self.rows("SELECT DISTINCT optimiser FROM steps ORDER BY number"):
                numbers = self._numbers("SELECT number FROM steps WHERE optimiser = ? ORDER BY number", optimiser)
                yield Step, optimiser, numbers, STEPS, self._step
        for role in Role:
            yield from self._frames_by_first_path(role)
        for (kind,) in self.rows("SELECT DISTINCT kind FROM log"):
            numbers = self._numbers("SELECT number FROM log WHERE kind = ? ORDER BY number", kind)
            cls = known_class(kind)
            if cls is not None and issubclass(cls, Observation):
                yield cls, 0 if cls is Step else None, numbers, LOG, self._logged
            else:
                self.unknown[kind] = len(numbers)

    def _frames_by_first_path(self, role: Role) -> Iterator[tuple[Role, Group, list[int], str, Made]]:
        groups: dict[Group, list[int]] = {}
        for number, paths in self.rows("SELECT number, paths FROM frames WHERE role = ? ORDER BY number", role.value):
            names = self.text(paths)
            groups.setdefault(names[0] if names else None, []).append(number)
        for group, numbers in groups.items():
            yield role, group, numbers, FRAMES, self._frame

    def _numbers(self, query: str, *values: Any) -> list[int]:
        return [number for (number,) in self.rows(query, *values)]

    def _reader(self, numbers: list[int], query: str, made: Made) -> Callable[[int], Observation]:
        def read(place: int) -> Observation:
            (row,) = self.rows(f"{query} WHERE number = ?", numbers[place])
            return made(row)

        return read

    def _rows(self, query: str, made: Made) -> Iterator[tuple[Any, Made]]:
        with closing(self._database.cursor()) as cursor:
            for row in cursor.execute(query):
                yield row, made

    def _step(self, row: Any) -> Step:
        return step_of(row[1:], self.text)

    def _frame(self, row: Any) -> Frame:
        return frame_of(row[1:], self.text)

    def _logged(self, row: Any) -> Observation:
        return decode(row[2])

    def _refuse_foreign(self) -> None:
        found = self.facts.get("schema")
        if not isinstance(found, int) or found < 1:
            raise UnusableInput(f"{self.path} is no run of sleuth: it does not say its schema.")
        if found > VERSION:
            raise UnusableInput(
                f"{self.path} was written by a newer sleuth (schema {found}; "
                f"this one reads up to {VERSION}): pip install -U sleuth"
            )


def _open(path: Path) -> sqlite3.Connection:
    name = path.resolve().as_posix()
    address = "file:" + "".join(f"%{ord(c):02x}" if c in "%?#" else c for c in name)
    database = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=5.0, isolation_level=None)
    try:
        database.execute("SELECT 1 FROM sqlite_master").fetchall()
        return database
    except sqlite3.Error as error:
        database.close()
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise UnusableInput(f"{path} cannot be read as a run of sleuth: {error}") from None
    # Where nothing may be written beside it, SQLite reads a file only when told that nobody else writes it.
    return sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, isolation_level=None)
