"""Somebody's script, or a cell, from its first line to the report: every training that begins in it is watched."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sleuth.adapters import adapter_named, frameworks
from sleuth.api import RUNS, build_report, configured, file_name, new_folder
from sleuth.core.contract.adapter import Adapter, Attended, Discovered, Discovering, Discovers, Explains
from sleuth.core.contract.kept import Kept
from sleuth.core.engine import NAMES, Engine
from sleuth.core.errors import EnoughSteps
from sleuth.core.observation import Absent
from sleuth.core.report import Report
from sleuth.core.settings import Configuration
from sleuth.core.stage import Severity
from sleuth.live import Watch
from sleuth.script.by_hand import advice
from sleuth.script.post_mortem import explain_crash

# How long another process of the same run may take to make the run's folder.
FOLDER_SECONDS = 10.0
# For experiments after the end: this share of the script's own time, within bounds.
BUDGET_SHARE = 0.1
BUDGET_SECONDS = (6.0, 30.0)
# At least, where each experiment is compiled before it runs, which takes some tenths of a second every time.
COMPILED_SECONDS = 15.0


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
    watch: Watch | None = None


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
            watched.end_by(_as_failure(error))
        for discovering in self._discovering:  # what lay below a watch is free now
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
            self._report_of,
            every=self.options.every,
            overhead=self.options.overhead,
            folder=self._folder(self.options.name or found.name),
            quiet=True,
            name=self.options.name or self.subject,
            rank=self.rank.number,
            aftermath=self._look_back if self.options.budget is None or self.options.budget > 0 else None,
        )
        watched = _Watched(watch, self._ended)
        self._open.append(watched)
        watch.open()
        return watched

    def _look_back(self, watch: Watch, kept: Kept) -> None:
        """Experiments on what was kept, where the script has come to its end by itself: nobody waits for them in its middle."""
        from sleuth.aftermath import Aftermath
        from sleuth.views import progress

        if not self._is_over:
            return
        least, most = BUDGET_SECONDS
        least = COMPILED_SECONDS if kept.is_compiled else least
        seconds = self.options.budget if self.options.budget is not None else min(most, max(least, BUDGET_SHARE * watch.seconds))
        during = ""
        with progress.shown(False if self.options.quiet else None) as show:
            try:
                aftermath = Aftermath(watch.adapter, kept, seconds, watch.has)
                aftermath.examine(watch.take, lambda text: show(f"{text} (some {seconds:.0f} s in all; Ctrl-C: no more)"))
                during = aftermath.interrupted
            except KeyboardInterrupt:
                during = "getting ready"
        if during:
            watch.remark(f"the experiments after the end were interrupted while: {during}; this is the report so far")

    def _ended(self, watched: "_Watched", keep: bool) -> None:
        self._open.remove(watched)
        folder = None if watched.watch.file is None else watched.watch.file.parent
        if keep:
            self.told.append(Told(watched.watch.report(), folder, watched.watch))
        elif folder is not None:
            self._begun -= 1
            shutil.rmtree(folder, ignore_errors=True)

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
            if discovering.trouble:
                found.append(f"listening for trainings ended early: {discovering.trouble}")
            if discovering.missed:
                found.append(f"{discovering.missed} more trainings began after the first ones; they were not watched")
        if self.rank.count > 1:
            found.append(f"this is process {self.rank.number} of {self.rank.count}; each has its own file in the run's folder")
        return tuple(found)

    def _report_of(self, engine: Engine, watch: Watch) -> Report:
        from sleuth.store.arrays import StoredRun

        return build_report(
            engine,
            source="run",
            framework=watch.adapter.name,
            subject=self.subject,
            seconds=watch.seconds,
            notes=(*watch.notes, *self._notes()),
            overhead=watch.overhead,
            record=None if watch.file is None else StoredRun(watch.file),
        )

    def _add_crash(self, error: BaseException | None) -> None:
        """It came when the last training was over: the report that is spoken of tells of it too."""
        told = self.main()
        asked = (self._adapter.explain,) if isinstance(self._adapter, Explains) else ()
        seen = explain_crash(error, asked, steps=told.report.steps)
        if seen and told.watch is not None:
            told.watch.take_late(seen)
            self.told[self.told.index(told)] = replace(told, report=told.watch.report())

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
    def __init__(self, watch: Watch, ended: "Callable[[_Watched, bool], None]") -> None:
        self.watch, self._ended = watch, ended

    @property
    def steps(self) -> int:
        return self.watch.watching.steps

    def end(self) -> None:
        self.end_by(None)

    def end_by(self, error: BaseException | None) -> None:
        self.watch._end_by(error)
        self._ended(self, True)

    def drop(self) -> None:
        self.watch.close()
        self._ended(self, False)


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
