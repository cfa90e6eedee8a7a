"""A watch from its opening to its end: a thread takes what the adapter noted, judges it now and then and writes it down."""

import atexit
import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sleuth.core.contract.adapter import Adapter, Describes, Watches, Watching
from sleuth.core.contract.expectation import Expect, require_expectations
from sleuth.core.contract.guard import Act, Alarm, Guard
from sleuth.core.diagnosis import diagnose
from sleuth.core.engine import Engine
from sleuth.core.errors import EnoughSteps, Stopped, Unsupported, UnusableInput
from sleuth.core.history import History
from sleuth.core.observation import Architecture, Dropped, Ending, Evaluation, Split
from sleuth.core.report import Report
from sleuth.core.subject import Subject
from sleuth.script.post_mortem import explain_crash
from sleuth.session.deaf import watching_or_deaf
from sleuth.session.on_error import OnError, Reactions
from sleuth.session.recorded import RecordedTraining, as_stored
from sleuth.session.report import report_of
from sleuth.store.writing import Writer

# Whatever this thread does in Python the training waits for: seldom, and little at a time.
DRAIN_SECONDS = 0.4
# Judging may take this share of the time.
JUDGED_SHARE = 0.002
FIRST_JUDGED_SECONDS = 4.0

# Nothing else of ours holds a watch: one that the user lets go of comes to its end by itself.
OPEN: "weakref.WeakSet[Watch]" = weakref.WeakSet()


class Watch:
    """`with sleuth.watch(model, optimizer) as w:` around a loop. Use from one thread; `report` works at any time."""

    def __init__(
        self,
        adapter: Adapter,
        model: Any,
        optimisers: Sequence[Any],
        engine: Engine,
        *,
        every: int | None,
        overhead: float,
        folder: Path | None,
        quiet: bool,
        name: str,
        rank: int = 0,
        keeps: bool = False,
        on_error: OnError = "report",
        assert_finite: bool = False,
        assertions: Mapping[str, Expect] | None = None,
    ) -> None:
        """`keeps`: some of what passes by is kept for an examination after the end, see `RecordedTraining.kept`."""
        if not isinstance(adapter, Watches):
            raise UnusableInput(f"the {adapter.name} adapter cannot watch a loop yet; use sleuth.examine.")
        self.adapter, self.quiet = adapter, quiet
        self.findings: tuple[str, ...] = ()
        self._began = time.monotonic()
        self._thread_seconds = 0.0  # of our own thread
        self._failed = ""
        writer = Writer(folder / f"rank{rank}.sqlite") if folder is not None else None
        if writer is not None:
            writer.write_fact("run", {"framework": adapter.name, "subject": name, "began": time.time()})
        self.recorded = RecordedTraining(adapter, name, engine, writer)
        self._lock = self.recorded.lock
        self._done = threading.Event()
        self._next_judgement = self._began + FIRST_JUDGED_SECONDS
        self._told_dropped = 0
        self._unshaped = self._describe(model, optimisers)
        # Scenes are numbered by the run: one process of several keeps them.
        self._reactions = Reactions(on_error, folder if rank == 0 else None)
        self._guard = Guard(
            every_gradient=assert_finite or self._reactions.stops,
            every_activation=assert_finite,
            expectations=require_expectations(assertions),
            room=self._reactions.room,
            tell=_teller(self),
        )
        options: dict[str, Any] = {"every": every, "overhead": overhead, "guard": self._guard, "keeps": keeps}
        self.watching = watching_or_deaf(lambda: adapter.watch(model, optimisers, **options))
        self._thread = threading.Thread(target=_work, args=(weakref.ref(self), self._done), name="sleuth", daemon=True)
        self._process = os.getpid()

    def open(self) -> "Watch":
        self.watching = watching_or_deaf(self._begin)
        self._thread.start()
        OPEN.add(self)
        held = (self.watching, self.recorded.writer, self._done, self.quiet, self._process, self._began)
        weakref.finalize(self, _let_go, *held).atexit = False
        return self

    def _begin(self) -> Watching:
        try:
            self.watching.open()
        except Exception:
            with contextlib.suppress(Exception):  # no hook stays behind
                self.watching.close()
            raise
        return self.watching

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: object) -> None:
        self.close(error)

    def log(self, *, step: int | None = None, **metrics: float) -> None:
        """Values that only the user knows: loss, accuracy; with `val_` in front they are of the validation data."""
        at = self.watching.steps if step is None else step
        for split, prefix in ((Split.TRAIN, ""), (Split.VALIDATION, "val_")):
            mine = {k.removeprefix("val_"): float(v) for k, v in metrics.items() if k.startswith("val_") == bool(prefix)}
            if mine:
                self.recorded.take(Evaluation(at, split, mine, logged=True))

    @property
    def history(self) -> History:
        """What was seen so far."""
        return self.recorded.history

    @property
    def file(self) -> Path | None:
        """Where the run is written; None: nowhere."""
        return self.recorded.file

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says beside its findings."""
        self._note()
        return self.recorded.notes

    @property
    def overhead(self) -> dict[str, Any]:
        """What watching cost: time inside the training and of our own thread, against the rest."""
        own = self.watching.own_seconds + self._thread_seconds
        plain = max(self.recorded.seconds - own, 1e-9)
        return {
            "ratio": round(1 + own / plain, 4),
            "recorded_steps": self.watching.looks,
            "dropped_steps": self.watching.dropped,
        }

    def report(self) -> Report:
        with self._lock:
            self._drain()
            self._note()
            return report_of(self.recorded, source="watch")

    def end(self, error: BaseException | None = None) -> RecordedTraining:
        """Every hook is gone afterwards; `error` is what left the loop. What comes back can still be examined and added to; its
        file is open until somebody closes it. A second time does nothing."""
        # A child of the process has neither the thread nor the right to write.
        if self._done.is_set() or os.getpid() != self._process:
            return self.recorded
        if self._unshaped is not None:
            self._describe(*self._unshaped)
            self._unshaped = None  # holds the model
        if not isinstance(error, Stopped):
            self.recorded.take(*explain_crash(error, self.watching.explain, steps=self.watching.steps))
        OPEN.discard(self)
        self._note()
        self._done.set()
        try:
            self.watching.close()
        finally:
            if self._thread.is_alive() and self._thread is not threading.current_thread():
                self._thread.join(timeout=10)
            self._reactions.write()
            with self._lock:
                self._drain()
                self.recorded.take(Ending(self.watching.steps, _how(error)))
                self._take_kept()
                self._note()
        return self.recorded

    def close(self, error: BaseException | None = None) -> None:
        """Ends the watch, closes its file and says in a line what was found. A second time does nothing."""
        if self._done.is_set() or os.getpid() != self._process:
            return
        self.end(error).close()
        if not self.quiet:
            print(self._last_line(), file=sys.stderr)

    def _take_kept(self) -> None:
        try:
            self.recorded.kept = self.watching.take_kept()
        except Exception as error:
            self._failed = self._failed or f"what was kept could not be put together: {type(error).__name__}: {error}"

    def _note(self) -> None:
        """What the report says beside its findings, as it is now."""
        if not self._done.is_set():
            self.recorded.seconds = time.monotonic() - self._began
        found = list(self.watching.remarks)
        if self.watching.trouble:
            found.append(self._trouble())
        if self._failed:
            found.append(self._failed)
        self.recorded.watch_notes = (*found, *self._reactions.notes)
        self.recorded.overhead = self.overhead

    def _trouble(self) -> str:
        when = f"watching stopped after {self.watching.steps} steps" if self.watching.steps else "watching could not begin"
        return f"{when}: {self.watching.trouble}"

    def _last_line(self) -> str:
        report = self.report()
        culprit = report.culprits[0].finding if report.culprits else None
        quiet = self._trouble() if self.watching.trouble else "nothing found"
        verdict = f"{culprit.name}: {culprit.summary}" if culprit else quiet
        cost = (self.overhead["ratio"] - 1) * 100
        return f"sleuth · {self.watching.steps} steps · {verdict} · watching cost {cost:.1f} %"

    def _describe(self, model: Any, optimisers: Sequence[Any]) -> tuple[Any, Sequence[Any]] | None:
        """What is returned is to be described again at the end: it has no shape before its first batch."""
        if not isinstance(self.adapter, Describes):
            return None
        subjects = [Subject(model, None, optimizer=o, name=self.recorded.name) for o in (optimisers or [None])]
        try:
            found = _held_by_any([self.adapter.architecture(subject) for subject in subjects])
            self.recorded.take(found, self.adapter.settings(subjects[0]))
        except (UnusableInput, Unsupported):
            raise
        except Exception as error:
            self._failed = f"the model could not be described: {type(error).__name__}: {error}"
            return None
        return (model, optimisers) if found.unshaped else None

    def _look_after(self) -> None:
        """What the thread does now and then."""
        began = time.thread_time()
        with self._lock:
            self._drain()
            self._judge()
        self._reactions.write()
        self._thread_seconds += time.thread_time() - began

    def _drain(self) -> None:
        self.recorded.take(*self.watching.drain())
        if self.watching.dropped > self._told_dropped:
            self.recorded.take(Dropped(self.watching.dropped - self._told_dropped, "the thread that records them fell behind"))
            self._told_dropped = self.watching.dropped
        self.recorded.commit()

    def _alarmed(self, alarm: Alarm) -> Act | None:
        """On the training thread: what was seen is judged at once, and what the user wants done comes back."""
        with self._lock:
            self.recorded.take(*self.watching.drain(), *alarm.observations)
            finding = alarm.finding or (self.recorded.engine.find(alarm.name) if alarm.name else None)
            return self._reactions.heard(alarm, finding)

    def _judge(self) -> None:
        if time.monotonic() < self._next_judgement:
            return
        began, engine = time.thread_time(), self.recorded.engine
        judgement = engine.judge()
        self.findings = tuple(f.name for f in judgement.findings)
        culprits = diagnose(judgement.findings, {c.name: c.explains for c in engine.checks})
        self._guard.asked.extend(self._reactions.wanted(f for c in culprits for f in (c.finding, *c.symptoms)))
        cost = time.thread_time() - began
        self._next_judgement = time.monotonic() + max(FIRST_JUDGED_SECONDS, cost / JUDGED_SHARE)


def _how(error: BaseException | None) -> str:
    if error is None:
        return "completed"
    if isinstance(error, KeyboardInterrupt | EnoughSteps):
        return "interrupted"
    return "stopped" if isinstance(error, SystemExit) else "failed"


def _work(reference: "weakref.ref[Watch]", done: threading.Event) -> None:
    while not done.wait(DRAIN_SECONDS):
        watch = reference()
        if watch is None:
            return
        try:
            watch._look_after()
        except Exception as error:  # the next round may do better, and the report says it
            watch._failed = f"a round of judging failed: {type(error).__name__}: {error}"
        del watch


def _let_go(watching: Watching, writer: Writer | None, done: threading.Event, quiet: bool, process: int, began: float) -> None:
    """Nobody holds the watch any more, and nobody has closed it: as when a cell of a notebook runs again."""
    if done.is_set() or os.getpid() != process:
        return
    done.set()
    try:
        watching.close()
        left = [*watching.drain(), Ending(watching.steps, "stopped")]
        if writer is not None:
            writer.write([as_stored(observation) for observation in left])
            notes = [*watching.remarks, "nobody held the watch any more, so it ended by itself"]
            writer.write_fact("end", {"seconds": time.monotonic() - began, "overhead": None, "notes": notes})
            writer.close()
    except Exception as error:  # in the middle of whatever the user is doing
        if not quiet:
            print(f"sleuth · the watch that was let go did not end well: {type(error).__name__}: {error}", file=sys.stderr)
    if not quiet and watching.steps == 0:
        print("sleuth · the watch ended before the first step: keep it, w = sleuth.watch(…), or use with", file=sys.stderr)


@atexit.register
def _end_all() -> None:
    """The script ends while watches are open. Without `with` an exception that ended it is known only here."""
    for watch in list(OPEN):
        watch.close(getattr(sys, "last_value", None))


def _teller(watch: Watch) -> Callable[[Alarm], Act | None]:
    """Holds the watch only as long as the user does."""
    weak = weakref.ref(watch)

    def tell(alarm: Alarm) -> Act | None:
        mine = weak()
        return None if mine is None else mine._alarmed(alarm)

    return tell


def _held_by_any(architectures: list[Architecture]) -> Architecture:
    """Each was described beside another optimiser: a parameter is optimised where one of them holds it."""
    columns = zip(*(a.parameters for a in architectures), strict=True)
    parameters = (replace(same[0], optimised=any(p.optimised for p in same)) if len(same) > 1 else same[0] for same in columns)
    first, *others = architectures
    strays = (
        first.strays if first.strays is None else tuple(s for s in first.strays if all(s in (a.strays or ()) for a in others))
    )
    return replace(first, parameters=tuple(parameters), strays=strays)
