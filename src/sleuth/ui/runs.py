"""Which runs there are, and what each is in one line."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sleuth.core.errors import UnusableInput
from sleuth.store.reading import Run, files_of

# A training writes at least every second while it steps. One step may take long, so silence alone is no end.
SILENT_SECONDS = 60.0

# Changes whenever something was written to a run: names, sizes and times of its files.
Mark = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Summary:
    name: str  # of the folder: what addresses use
    subject: str = ""
    began: float | None = None  # seconds since 1970
    written: float | None = None
    seconds: float = 0.0
    steps: int = 0
    loss: float | None = None  # the latest
    ended: str | None = None  # completed, stopped, interrupted, failed; None: nobody said so
    framework: str | None = None
    trouble: str = ""  # why it cannot be read

    @property
    def status(self) -> str:
        if self.trouble:
            return "unreadable"
        if self.ended:
            return self.ended
        silent = time.time() - (self.written or 0.0)
        return "running" if silent < SILENT_SECONDS else "silent"

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "status": self.status}


class Runs:
    """The runs of one folder. Nothing outside of it is ever opened, whatever a name or a link says."""

    def __init__(self, folder: Path, only: str | None = None) -> None:
        self.folder, self.only = folder, only
        self._inside = folder.resolve()
        self._known: dict[str, tuple[Mark, Summary]] = {}

    def names(self) -> list[str]:
        """The newest first: a folder's name begins with the time."""
        try:
            found = [entry.name for entry in self.folder.iterdir()]
        except OSError:
            return []
        return sorted((name for name in found if self.has(name)), reverse=True)

    def file(self, name: str) -> Path:
        """The first process's file of a run; `LookupError` for whatever is not in the list."""
        if not self.has(name):
            raise LookupError(name)
        return files_of(self.folder / name)[0]

    def mark(self, name: str) -> Mark:
        return mark_of(self.file(name))

    def summary(self, name: str) -> Summary:
        try:
            file = self.file(name)
            mark = mark_of(file)
            if self._known.get(name, (None,))[0] != mark:
                self._known[name] = (mark, summarise(name, file))
        except UnusableInput as error:
            return Summary(name, trouble=str(error))
        return self._known[name][1]

    def has(self, name: str) -> bool:
        # The name of a folder right here; one that is no text can be no address.
        if name in ("", ".", "..") or Path(name).name != name or not name.isprintable() or self.only not in (None, name):
            return False
        files = list((self.folder / name).glob("*.sqlite"))
        return bool(files) and all(file.resolve().is_relative_to(self._inside) for file in files)


def find(path: Path) -> Runs:
    """`path`: a folder of runs, one run, or a project with runs below .sleuth/runs."""
    if any(path.glob("*.sqlite")):
        return Runs(path.resolve().parent, path.resolve().name)
    below = path / ".sleuth" / "runs"
    return Runs(below if below.is_dir() else path)


def mark_of(file: Path) -> Mark:
    """SQLite keeps what is newest beside the file until it is merged in."""
    return tuple(_states(file))


def _states(file: Path) -> Iterator[tuple[str, int, int]]:
    for part in (file, file.with_name(f"{file.name}-wal")):
        try:
            state = part.stat()
        except OSError:
            continue
        yield part.name, state.st_size, state.st_mtime_ns


def summarise(name: str, file: Path) -> Summary:
    with Run(file) as run, run.guarded():
        about, facts = run.about, run.facts
        endings = [ending.how for ending in run.logged("Ending")]
        last = run.last_step()
        return Summary(
            name,
            subject=about.subject,
            began=_number(dict(facts.get("run", {})).get("began")),
            written=_number(facts.get("written")),
            seconds=about.seconds,
            steps=run.count_steps(),
            loss=last.loss if last is not None else None,
            ended=str(endings[-1]) if endings else "stopped" if about.ended else None,
            framework=about.framework,
        )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
