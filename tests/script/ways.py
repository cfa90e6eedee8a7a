"""A script by plain Python and by `sleuth run`, each in a process of its own."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).with_name("scripts")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


@dataclass(frozen=True)
class Ended:
    out: str
    errors: str
    code: int


def plain(*words: str, folder: Path = SCRIPTS) -> Ended:
    return _run([sys.executable, *words], folder)


def watched(*words: str, folder: Path = SCRIPTS, options: tuple[str, ...] = (), runs: Path | None = None) -> Ended:
    where = ("--run-dir", str(runs)) if runs is not None else ()
    return _run([sys.executable, "-m", "sleuth", "run", *where, *options, *words], folder)


def report_of(ended: Ended, same: Ended) -> str:
    """What sleuth added; everything before it must be what plain Python gave."""
    assert ended.out == same.out
    assert ended.code == same.code
    assert ended.errors.startswith(same.errors), ended.errors
    added = ended.errors[len(same.errors) :]
    assert added.startswith("\nsleuth · ")
    return added


def _run(command: list[str], folder: Path) -> Ended:
    # What runs in the background of a shell is deaf to Ctrl-C, and hands that on.
    def hear() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=240, preexec_fn=hear)
    return Ended(done.stdout, done.stderr, done.returncode)
