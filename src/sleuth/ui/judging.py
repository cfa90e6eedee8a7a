"""Reports of runs, made beside the answering: a page never waits long for a verdict, and a run that grows is judged anew."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from sleuth.core.errors import UnusableInput
from sleuth.core.report import Report
from sleuth.ui.runs import Mark
from sleuth.ui.verdict import Part, parts_of, parts_without

# A training shares its machine with us: at most this share of the time is spent on judging one that grows.
SHARE = 0.1
LEAST_SECONDS = 1.0


@dataclass(frozen=True)
class Judged:
    mark: Mark  # of the files that were judged
    report: Report | None
    trouble: str  # why there is no report
    parts: list[Part]
    seconds: float  # it took
    at: float  # by the clock of this process


@dataclass
class _Wish:
    mark: Mark
    urgent: bool  # somebody looks at this very run
    done: threading.Event = field(default_factory=threading.Event)


class Judge:
    """One judgement at a time, those of runs that somebody looks at before those of a list."""

    def __init__(self, load: Callable[[Path], Report]) -> None:
        self._load = load
        self._known: dict[Path, Judged] = {}
        self._wishes: dict[Path, _Wish] = {}
        self._change = threading.Condition()
        threading.Thread(target=self._work, name="sleuth-judge", daemon=True).start()

    def known(self, run: Path) -> Judged | None:
        return self._known.get(run)

    def latest(self, run: Path, mark: Mark, *, urgent: bool = False, final: bool = False) -> Judged | None:
        """What was last said of a run. Where that is of an earlier state a new one is asked for; of a `final` state at once."""
        with self._change:
            known = self._known.get(run)
            if known is None or (known.mark != mark and (final or _is_due(known))):
                wish = self._wishes.setdefault(run, _Wish(mark, urgent))
                wish.urgent |= urgent
                self._change.notify()
        return known

    def wait(self, run: Path, seconds: float) -> Judged | None:
        """For a judgement that was asked for, but no longer than that."""
        if (wish := self._wishes.get(run)) is not None:
            wish.done.wait(seconds)
        return self._known.get(run)

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._wishes)
                run, wish = max(self._wishes.items(), key=lambda item: item[1].urgent)
            judged = self._judge(run, wish.mark)
            with self._change:
                self._known[run] = judged
                del self._wishes[run]
            wish.done.set()

    def _judge(self, run: Path, mark: Mark) -> Judged:
        began = time.monotonic()
        report, trouble = None, ""
        try:
            # What it was judged by is not needed any more, and large.
            report = replace(self._load(run), remembered=None)
            parts = parts_of(report)
        except Exception as error:  # one run that cannot be judged must not stop those after it
            trouble = str(error) if isinstance(error, UnusableInput) else f"{type(error).__name__}: {error}"
            parts = parts_without(trouble)
        now = time.monotonic()
        return Judged(mark, report, trouble, parts, now - began, now)


def _is_due(known: Judged) -> bool:
    return time.monotonic() - known.at > max(LEAST_SECONDS, known.seconds * (1 / SHARE - 1))
