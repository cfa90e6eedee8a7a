"""A watch from its opening to its report: a thread takes what the adapter noted, judges it now and then and writes it down."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sleuth.core.adapter import Adapter, Describes, Watches, Watching
from sleuth.core.engine import Engine
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Dropped, Ending, Evaluation, Frame, Observation, Split
from sleuth.core.report import Report
from sleuth.core.statistics import pack, unpack
from sleuth.core.subject import Subject
from sleuth.store.writing import Writer

DRAIN_SECONDS = 0.25
# Judging may take this share of the time.
JUDGED_SHARE = 0.004
FIRST_JUDGED_SECONDS = 2.0

MakeReport = Callable[[Engine, "Watch"], Report]


class Watch:
    """`with sleuth.watch(model, optimizer) as w:` around a loop. Use from one thread; `report` works at any time."""

    def __init__(
        self,
        adapter: Adapter,
        model: Any,
        optimisers: Sequence[Any],
        engine: Engine,
        make_report: MakeReport,
        *,
        every: int | None,
        overhead: float,
        folder: Path | None,
        quiet: bool,
        name: str,
    ) -> None:
        if not isinstance(adapter, Watches):
            raise UnusableInput(f"the {adapter.name} adapter cannot watch a loop yet; use sleuth.examine.")
        self.adapter, self.name, self.quiet = adapter, name, quiet
        self.began = time.monotonic()
        self.seconds = 0.0
        self.thread_seconds = 0.0  # of our own thread
        self.findings: tuple[str, ...] = ()
        self._engine, self._make_report = engine, make_report
        self._lock = threading.RLock()
        self._done = threading.Event()
        self._writer = Writer(folder / "rank0.sqlite") if folder is not None else None
        if self._writer is not None:
            self._writer.write_fact("run", {"framework": adapter.name, "subject": name, "began": time.time()})
        self._next_judgement = self.began + FIRST_JUDGED_SECONDS
        self._told = 0
        self._described(model, optimisers)
        self.watching: Watching = adapter.watch(model, optimisers, every=every, overhead=overhead)
        self._thread = threading.Thread(target=self._work, name="sleuth", daemon=True)

    def open(self) -> "Watch":
        self.watching.open()
        self._thread.start()
        return self

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._end("completed" if kind is None else "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")

    def log(self, *, step: int | None = None, **metrics: float) -> None:
        """Values that only the user knows: loss, accuracy; with `val_` in front they are of the validation data."""
        at = self.watching.steps if step is None else step
        for split, prefix in ((Split.TRAIN, ""), (Split.VALIDATION, "val_")):
            mine = {k.removeprefix("val_"): float(v) for k, v in metrics.items() if k.startswith("val_") == bool(prefix)}
            if mine:
                self._take([Evaluation(at, split, mine)])

    def report(self) -> Report:
        with self._lock:
            self._drain()
            if not self._done.is_set():
                self.seconds = time.monotonic() - self.began
            return self._make_report(self._engine, self)

    def close(self) -> None:
        """Ends the watch; every hook is gone afterwards. A second time does nothing."""
        self._end("completed")

    def _end(self, how: str) -> None:
        if self._done.is_set():
            return
        self.seconds = time.monotonic() - self.began
        self._done.set()
        try:
            self.watching.close()
        finally:
            if self._thread.is_alive():
                self._thread.join(timeout=10)
            with self._lock:
                self._drain()
                self._take([Ending(self.watching.steps, how)])
                if self._writer is not None:
                    self._writer.write_fact("end", {"seconds": self.seconds, "overhead": self.overhead, "notes": self.notes})
                    self._writer.close()
        if not self.quiet:
            print(self._last_line(), file=sys.stderr)

    @property
    def overhead(self) -> dict[str, Any]:
        """What watching cost: time inside the training and of our own thread, against the rest."""
        own = self.watching.own_seconds + self.thread_seconds
        plain = max(self.seconds - own, 1e-9)
        return {
            "ratio": round(1 + own / plain, 4),
            "recorded_steps": self.watching.looks,
            "dropped_steps": self.watching.dropped,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        found = list(self.watching.remarks)
        if self.watching.trouble:
            found.append(f"watching stopped after {self.watching.steps} steps: {self.watching.trouble}")
        if self._writer is not None and self._writer.trouble:
            found.append(f"{self._writer.lost} observations are not in {self._writer.path}: {self._writer.trouble}")
        return tuple(found)

    def _last_line(self) -> str:
        report = self.report()
        culprit = report.culprits[0].finding if report.culprits else None
        verdict = f"{culprit.name}: {culprit.summary}" if culprit else "nothing found"
        cost = (self.overhead["ratio"] - 1) * 100
        return f"sleuth · {self.watching.steps} steps · {verdict} · watching cost {cost:.1f} %"

    def _described(self, model: Any, optimisers: Sequence[Any]) -> None:
        if isinstance(self.adapter, Describes):
            subject = Subject(model, None, optimizer=optimisers[0] if optimisers else None, name=self.name)
            self._take([self.adapter.architecture(subject), self.adapter.settings(subject)])

    def _work(self) -> None:
        while not self._done.wait(DRAIN_SECONDS):
            began = time.thread_time()
            with self._lock:
                self._drain()
                self._judge()
            self.thread_seconds += time.thread_time() - began

    def _drain(self) -> None:
        self._take(self.watching.drain())
        if self.watching.dropped > self._told:
            self._take([Dropped(self.watching.dropped - self._told, "the thread that records them fell behind")])
            self._told = self.watching.dropped
        if self._writer is not None:
            self._writer.commit()

    def _take(self, observations: list[Observation]) -> None:
        """What is judged is what is stored: a replay must come to the same verdict."""
        rounded = [_as_stored(o) for o in observations]
        with self._lock:
            for observation in rounded:
                self._engine.emit(observation)
            if self._writer is not None and rounded:
                self._writer.write(rounded)

    def _judge(self) -> None:
        if time.monotonic() < self._next_judgement:
            return
        began = time.thread_time()
        self.findings = tuple(f.name for f in self._engine.judge().findings)
        cost = time.thread_time() - began
        self._next_judgement = time.monotonic() + max(FIRST_JUDGED_SECONDS, cost / JUDGED_SHARE)


def _as_stored(observation: Observation) -> Observation:
    if not isinstance(observation, Frame):
        return observation
    table = unpack(pack(observation.table))
    return Frame(observation.step, observation.role, observation.paths, table, observation.exponents, observation.sampled)
