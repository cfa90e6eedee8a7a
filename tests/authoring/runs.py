"""One training, diagnosed; and many of them by several processes at once."""

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from sleuth import Report, examine
from sleuth.testing import CannotBuild, Case, Elsewhere, Kit, Loop, Training

LIVE_STEPS = 300  # as tests/test_zoo.py

# The finding about a check that raised.
FAILED = "sleuth-failed"


@dataclass(frozen=True)
class Run:
    """`kind`: sick or healthy, of a case; zoo, live zoo or look-alike, which are all healthy and in torch."""

    kind: str
    name: str
    kit: str = "torch"

    def __str__(self) -> str:
        return f"{self.kind} {self.name} in {self.kit}"


@dataclass(frozen=True)
class Outcome:
    """What was said of a run, as far as it concerns one check."""

    run: Run
    seconds: float
    cannot_build: str = ""
    elsewhere: bool = False  # another machine may be able to build it
    error: str = ""
    culprits: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()  # of the first culprit
    row: str = ""  # of a golden table
    summary: str = ""  # of the check, where it speaks
    raised: str = ""  # by the check itself
    not_examined: str = ""  # why it did not look
    share: tuple[int, int] | None = None  # zoo: checks examined, of those that could be


def outcome_of(run: Run, check: str) -> Outcome:
    """In the process of a worker. Whatever happens is an outcome: one training that breaks must not cost the others."""
    from tests.seeding import seed

    began = time.perf_counter()
    seed()
    try:
        with warnings.catch_warnings():
            # As in the tests: a division by zero in a check is a fault.
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", category=RuntimeWarning, module="sleuth")
            report, share = _report(run)
    except CannotBuild as reason:
        return Outcome(run, time.perf_counter() - began, cannot_build=str(reason), elsewhere=isinstance(reason, Elsewhere))
    except Exception as error:
        return Outcome(run, time.perf_counter() - began, error=f"{type(error).__name__}: {error}")
    return _told(run, report, check, time.perf_counter() - began, share)


def outcomes(runs: Sequence[Run], check: str, tell: Callable[[str], None]) -> Iterator[Outcome]:
    """As they come; `tell` is given a line every few seconds."""
    began = told = time.monotonic()
    workers = min(int(os.environ.get("SLEUTH_TEST_WORKERS", "2")), len(runs))
    # A fresh interpreter each: frameworks with threads of their own do not survive a fork.
    # Loaders inside them start their workers as they do in the tests.
    usual, spawn = multiprocessing.get_start_method(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_start_others_by, initargs=(usual,)) as pool:
        waiting = [pool.submit(outcome_of, run, check) for run in runs]
        for done, future in enumerate(as_completed(waiting), 1):
            outcome = future.result()
            if time.monotonic() - told > 10 or done == len(runs):
                told = time.monotonic()
                tell(f"  {done} of {len(runs)}, {told - began:.0f} s; last: {outcome.run} ({outcome.seconds:.1f} s)")
            yield outcome


def _start_others_by(method: str) -> None:
    multiprocessing.set_start_method(method, force=True)


def _report(run: Run) -> tuple[Report, tuple[int, int] | None]:
    from tests.feeding import share_examined
    from tests.grid import diagnosed
    from tests.watched import watched

    if run.kind in ("sick", "healthy"):
        return diagnosed(_case(run.name, run.kit), _kit(run.kit), run.kind), None
    if run.kind == "look-alike":
        built = _lookalikes()[run.name]()
        assert isinstance(built, Loop | Training)
        return watched(built), None
    subject = import_module(f"tests.zoo.{run.name}").build()
    if run.kind == "live zoo":
        return watched(Training(subject, LIVE_STEPS)), None
    report = examine(subject, budget_seconds=180, progress=False)
    return report, share_examined(report, subject)


def _told(run: Run, report: Report, check: str, seconds: float, share: tuple[int, int] | None) -> Outcome:
    from tests.golden_tables import found_in

    finding = next((f for f in report.findings if f.name == check), None)
    return Outcome(
        run,
        seconds,
        culprits=tuple(c.finding.name for c in report.culprits),
        findings=tuple(dict.fromkeys(f.name for f in report.findings)),
        symptoms=tuple(s.name for s in report.culprits[0].symptoms) if report.culprits else (),
        row=found_in(report) if report.culprits else "",
        summary=finding.summary if finding else "",
        raised=next((f.summary for f in report.findings if f.name == FAILED and f.where == check), ""),
        not_examined=report.not_examined.get(check, ""),
        share=share,
    )


@cache
def _kit(name: str) -> Kit:
    from tests.conftest import kits

    return next(kit for kit in kits() if kit.name == name)


@cache
def _cases(kit: str) -> dict[str, Case]:
    from tests.grid import cases_of

    return {case.name: case for case in cases_of(_kit(kit))}


def _case(name: str, kit: str) -> Case:
    return _cases(kit)[name]


@cache
def _lookalikes() -> dict[str, Callable[[], object]]:
    from tests.confounders import healthy

    return {f"{topic}/{variant}": build for topic, variant, build in healthy()}
