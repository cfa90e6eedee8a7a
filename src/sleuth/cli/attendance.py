"""Stands by while a script runs: wakes when it imports a framework, and tells the report after its last exit handler."""

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, TextIO

import click

from sleuth.adapters import frameworks
from sleuth.cli.output import Output
from sleuth.cli.plainly import own_failure
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.importing import forget, when_imported
from sleuth.core.runtime.source.loading import UsersFiles

if TYPE_CHECKING:
    from sleuth.session.script import Session, Told


class Attendance:
    def __init__(self, subject: str, options: dict[str, Any], output: Output) -> None:
        self._subject, self._options, self._output = subject, options, output
        self._folder = Path.cwd()
        self._process = os.getpid()
        self._began = time.monotonic()
        self._session: Session | None = None
        self._coming: list[str] = []  # frameworks that are there and not listened to yet
        self._is_attending = False
        self._trouble: str | None = None
        self._files = UsersFiles(frameworks())  # of a script without a framework
        self.is_failed = False  # by --fail-on

    def compiled(self, source: bytes, file: str) -> CodeType | None:
        """The script with what makes it heard; None: as it is."""
        return self._files.compiled(source, file)

    @property
    def is_here(self) -> bool:
        """False in a child that was forked off: it has nothing to tell."""
        return os.getpid() == self._process

    def begin(self) -> None:
        # The settings are read now where there are any: a misspelt name must not wait for the end of a training.
        if self._options["select"] or self._options["ignore"] or _has_settings(self._folder):
            self._wake()
        # The first handler to be registered is the last to be called.
        atexit.register(self._tell)
        self._files.open()
        self._waiting = [when_imported(name, partial(self._attend, name)) for name in (*frameworks(), "numpy")]

    def end(self, error: BaseException | None) -> None:
        try:
            self._files.close()
            for waiting in self._waiting:
                if waiting is not None:
                    forget(waiting)
            session = self._wake()
            session.end(error)
            self.is_failed = session.rank.number == 0 and any(self._output.is_failed_by(told.report) for told in session.told)
        except Exception as failure:
            self._trouble = own_failure(failure)

    def _wake(self) -> "Session":
        from sleuth.session.script import Options, Session

        if self._session is None:
            with _back_in(self._folder):
                self._session = Session(self._subject, Options(**self._options))
        return self._session

    def _attend(self, name: str) -> None:
        """Our own modules import NumPy, which calls back here in the middle of it: that waits until they are all there."""
        self._coming.append(name)
        if self._is_attending:
            return
        self._is_attending = True
        try:
            session = self._wake()
            while self._coming:
                session.attend(self._coming.pop(0))
        except Exception as failure:
            self._trouble = own_failure(failure)
        finally:
            self._is_attending = False

    def _tell(self) -> None:
        """Whatever goes wrong here, the script's own exit code stands."""
        if not self.is_here:
            return
        stream = _screen()
        try:
            if self._trouble is not None:
                print(self._trouble, file=stream)
            elif self._session is not None and self._session.rank.number == 0 and self._session.told:
                with _back_in(self._folder):
                    self._tell_of(self._session, stream)
        except (UnusableInput, click.ClickException) as error:
            print(f"sleuth: {error}", file=stream)
        except Exception as error:
            with contextlib.suppress(Exception):
                print(own_failure(error), file=stream)

    def _tell_of(self, session: "Session", stream: TextIO) -> None:
        from sleuth.views.terminal import render_for_screen

        first = session.main()
        if not self._output.quiet:
            _flush(sys.stdout)
            shown = first.folder is not None or bool(first.report.findings)
            lines = [render_for_screen(first.report, stream)] if shown else [_nothing(first)]
            print("", *lines, *_more(first, session.told), sep="\n", file=stream, flush=True)
        self._output.write(first.report)


@contextlib.contextmanager
def _back_in(folder: Path) -> Iterator[None]:
    """The script may have gone elsewhere; where it was started may be gone."""
    try:
        elsewhere = not folder.samefile(Path.cwd())
    except OSError:
        elsewhere = False
    with contextlib.chdir(folder) if elsewhere else contextlib.nullcontext():
        yield


def _nothing(told: "Told") -> str:
    """Why, and what to do instead."""
    reason, *more = told.report.notes
    return "\n".join((f"sleuth · {told.report.subject} · nothing was examined: {reason}", *more))


def _more(first: "Told", told: "list[Told]") -> list[str]:
    lines = [] if first.folder is None else [f"Run: {_short(first.folder)}"]
    for other in told:
        if other is not first and other.folder is not None:
            culprits = other.report.culprits
            verdict = culprits[0].finding.name if culprits else "nothing found"
            lines.append(f"Also: {other.report.steps} steps · {verdict} · sleuth report {_short(other.folder)}")
    return lines


def _short(folder: Path) -> str:
    with contextlib.suppress(ValueError, OSError):
        return str(folder.relative_to(Path.cwd()))
    return str(folder)


def _screen() -> TextIO:
    """The script may have put something else in its place, or closed it."""
    stream = sys.__stderr__
    return stream if stream is not None and not stream.closed else sys.stderr


def _flush(stream: TextIO | None) -> None:
    with contextlib.suppress(Exception):
        if stream is not None:
            stream.flush()


def _has_settings(folder: Path) -> bool:
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            return b"tool.sleuth" in file.read_bytes()
    return False
