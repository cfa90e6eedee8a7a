"""Somebody's script, or a cell, from its first line to the report: every training that begins in it is watched."""

import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sleuth.adapters import adapter_named, frameworks
from sleuth.core.contract.adapter import Adapter, Attended, Discovered, Discovering, Discovers, Explains
from sleuth.core.engine import NAMES, Engine
from sleuth.core.errors import EnoughSteps
from sleuth.core.observation import Absent
from sleuth.core.report import Report
from sleuth.core.settings import Configuration
from sleuth.core.stage import Severity
from sleuth.script.by_hand import advice
from sleuth.script.post_mortem import explain_crash
from sleuth.session import aftermath
from sleuth.session.recorded import RecordedTraining
from sleuth.session.report import build_report, configured, report_of
from sleuth.session.run_folder import RUNS, file_name, new_folder
from sleuth.session.watch import Watch

# How long another process of the same run may take to make the run's folder.
FOLDER_SECONDS = 10.0


@dataclass(frozen=True)
class Options:
    every: int | None = None
    overhead: float = 0.02
    steps: int | None = None
    budget: float | None = None  # seconds for experiments after the end; None: as many as suit the script's own time
    select: list[str] | None = None
    ignore: Mapping[str, str] | None = None
    directory: Path = RUNS
    name: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class Rank:
    """This process among those of one run, as torchrun and its like tell it."""

    number: int = 0
    local: int = 0
    count: int = 1

    @classmethod
    def of_this_process(cls) -> "Rank":
        try:
            number, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            return cls(number, int(os.environ.get("LOCAL_RANK", number)), count)
        except (KeyError, ValueError):
            return cls()


@dataclass(frozen=True)
class Told:
    """One training of the script."""

    report: Report
    folder: Path | None
    recorded: RecordedTraining | None = None


@dataclass
class Session:
    """What is attended to while a script runs; `end` makes the reports."""

    subject: str
    options: Options
    told: list[Told] = field(default_factory=list)
    rank: Rank = field(default_factory=Rank.of_this_process)

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._directory = self.options.directory.absolute()  # the script may change the current folder
        self._configuration: Configuration = configured(self.options.select, dict(self.options.ignore or {}))
        self._open: list[_Watched] = []
        self._is_over = False  # and came to its end by itself
        self._begun = 0
        self._discovering: list[Discovering] = []
        self._adapter: Adapter | None = None
        self._trouble: list[str] = []

    def end(self, error: BaseException | None) -> None:
        """The script is over; `error` is what ended it. Every hook is gone afterwards."""
        self._is_over = _as_failure(error) is None or isinstance(error, EnoughSteps)
        for discovering in self._discovering:  # before the experiments, which train too
            discovering.close()
        is_heard = bool(self._open)
        for watched in list(self._open):
            watched.end(_as_failure(error))
        for discovering in self._discovering:  # second pass: removes patches that a watch's patch covered
            discovering.close()
        if not self.told:
            self.told.append(Told(self._empty_report(error), None))
        elif not is_heard:
            self._add_crash(_as_failure(error))

    def main(self) -> Told:
        """The training to speak of first: the one with the worst finding; of equals the longest."""
        return max(self.told, key=lambda told: (-_worst(told.report), told.report.steps))

    def attend(self, name: str, *, found_already: bool = False) -> None:
        """A framework is there. In the middle of the script's own import: nothing of ours may come through.

        `found_already`: what was made before counts as well, as in earlier cells of a notebook."""
        try:
            adapter = adapter_named(name)
            if not isinstance(adapter, Discovers):
                return
            discovering = adapter.discover(partial(self._begin, adapter), steps=self.options.steps)
            discovering.open(found_already=found_already)
            self._discovering.append(discovering)
            self._adapter = adapter
        except Exception as error:
            self._trouble.append(f"{name} could not be listened to: {type(error).__name__}: {error}")

    def _begin(self, adapter: Adapter, found: Discovered) -> "_Watched":
        from sleuth.checks import all_checks

        self._begun += 1
        watch = Watch(
            adapter,
            found.model,
            found.optimisers,
            Engine(all_checks(), self._configuration),
            every=self.options.every,
            overhead=self.options.overhead,
            folder=self._folder(self.options.name or found.name),
            quiet=True,
            name=self.options.name or self.subject,
            rank=self.rank.number,
            keeps=self.options.budget is None or self.options.budget > 0,
        )
        watched = _Watched(self, watch)
        self._open.append(watched)
        watch.open()
        return watched

    def _ended(self, watched: "_Watched", error: BaseException | None) -> None:
        self._open.remove(watched)
        recorded = watched.watch.end(error)
        # Nobody waits for experiments in the middle of a script, nor after it failed.
        if self._is_over:
            self._examine(recorded)
        recorded.close()
        folder = None if recorded.file is None else recorded.file.parent
        self.told.append(Told(self._report_of(recorded), folder, recorded))

    def _examine(self, recorded: RecordedTraining) -> None:
        from sleuth.views import progress

        budget = self.options.budget
        seconds = aftermath.budget_for(recorded) if budget is None else budget
        with progress.shown(False if self.options.quiet else None) as show:
            aftermath.examine(recorded, seconds, lambda text: show(f"{text} (some {seconds:.0f} s in all; Ctrl-C: no more)"))

    def _dropped(self, watched: "_Watched") -> None:
        self._open.remove(watched)
        watched.watch.close()
        self._begun -= 1
        if watched.watch.recorded.file is not None:
            shutil.rmtree(watched.watch.recorded.file.parent, ignore_errors=True)

    def _report_of(self, recorded: RecordedTraining) -> Report:
        return report_of(recorded, source="run", notes=self._notes())

    def _folder(self, name: str) -> Path:
        if self.rank.count == 1:
            return new_folder(self._directory, name)
        # All processes of a node have the launcher as their parent; the first of them makes the folder.
        again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        mark = f"-{file_name(name)}-{os.getppid()}.{again}.{self._begun}"
        if self.rank.local == 0:
            folder = self._directory / f"{time.strftime('%Y%m%d-%H%M%S')}{mark}"
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        until = time.monotonic() + FOLDER_SECONDS
        while time.monotonic() < until:
            if found := sorted(self._directory.glob(f"*{mark}")):
                return found[-1]
            time.sleep(0.02)
        return new_folder(self._directory, f"{name}-rank{self.rank.number}")

    def _notes(self) -> tuple[str, ...]:
        found = list(self._trouble)
        for discovering in self._discovering:
            found += discovering.remarks
            if discovering.trouble:
                found.append(f"listening for trainings ended early: {discovering.trouble}")
            if discovering.missed:
                found.append(f"{discovering.missed} more trainings began after the first ones; they were not watched")
        if self.rank.count > 1:
            found.append(f"this is process {self.rank.number} of {self.rank.count}; each has its own file in the run's folder")
        return tuple(found)

    def _add_crash(self, error: BaseException | None) -> None:
        """It came when the last training was over: the report that is spoken of tells of it too."""
        told = self.main()
        asked = (self._adapter.explain,) if isinstance(self._adapter, Explains) else ()
        seen = explain_crash(error, asked, steps=told.report.steps)
        if seen and told.recorded is not None:
            told.recorded.take(*seen)
            told.recorded.close()
            self.told[self.told.index(told)] = replace(told, report=self._report_of(told.recorded))

    def _empty_report(self, error: BaseException | None) -> Report:
        """Nothing was trained, or nothing that could be heard: not examined is not passed."""
        from sleuth.checks import all_checks

        engine = Engine(all_checks(), self._configuration)
        reason = self._why_nothing(error)
        for kind in _observation_classes():
            engine.emit(Absent(kind, reason))
        asked = (self._adapter.explain,) if isinstance(self._adapter, Explains) else ()
        for seen in explain_crash(_as_failure(error), asked):
            engine.emit(seen)
        return build_report(
            engine,
            source="run",
            framework=None if self._adapter is None else self._adapter.name,
            subject=self.subject,
            seconds=time.monotonic() - self._began,
            notes=(reason, *self._by_hand(), *self._notes()),
        )

    def _by_hand(self) -> tuple[str, ...]:
        main = sys.modules.get("__main__")
        told = advice(vars(main)) if self._adapter is None and main is not None else None
        return () if told is None else (told,)

    def _why_nothing(self, error: BaseException | None) -> str:
        there = [name for name in frameworks() if name in sys.modules]
        if self._adapter is None and there:
            why = "; ".join(self._trouble) or f"{' and '.join(there)} came into the process unheard"
            return f"{why}. Around a loop of your own, write: with sleuth.watch(model, optimizer): …"
        if self._adapter is None:
            *some, last = frameworks()
            return f"none of {', '.join(some)} and {last} was imported, and nothing else can be listened to from outside"
        if _as_failure(error) is not None:
            return f"the script ended by {type(error).__name__} before an optimiser was at work"
        return (
            f"no optimiser of {self._adapter.name} was heard in the script, and no weights were written by hand after each "
            "backward. Around a loop of your own, write: with sleuth.watch(model, optimizer): …"
        )


class _Watched(Attended):
    def __init__(self, session: Session, watch: Watch) -> None:
        self._session, self.watch = session, watch

    @property
    def steps(self) -> int:
        return self.watch.watching.steps

    def end(self, error: BaseException | None = None) -> None:
        self._session._ended(self, error)

    def drop(self) -> None:
        self._session._dropped(self)


def _as_failure(error: BaseException | None) -> BaseException | None:
    """`sys.exit(main())` is how many a script ends well."""
    well = isinstance(error, SystemExit) and not isinstance(error, EnoughSteps) and error.code in (None, 0)
    return None if well else error


def _worst(report: Report) -> int:
    ranks = {severity: number for number, severity in enumerate(sorted(Severity))}
    return min((ranks[f.severity] for f in report.findings), default=len(ranks))


def _observation_classes() -> list[type]:
    from sleuth.core import observation

    return [getattr(observation, name) for name in NAMES if hasattr(observation, name)]
