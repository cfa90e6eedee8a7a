"""Worker processes of a loader: one that was killed, and the user's line of one that raised."""

import re
import signal
from types import TracebackType
from typing import Any

from sleuth.adapters.torch.failures.scene import Explained
from sleuth.adapters.torch.place import is_users
from sleuth.core.location import Location, locate

KILLED = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\) "
    r"(?:is killed by signal: ([^.]+)|exited unexpectedly(?: with exit code (\d+))?)"
)
RAISED = re.compile(r"Caught (\w+) in (?:DataLoader worker|pin memory thread)")
LINE = re.compile(r'File "(.+?)", line (\d+)')
BOOTSTRAP = "before the current process has finished its bootstrapping"
SIGNALS = {"Killed": signal.SIGKILL, "Bus error": signal.SIGBUS, "Segmentation fault": signal.SIGSEGV, "Aborted": signal.SIGABRT}
CURES = {
    signal.SIGKILL: "the system kills what takes too much memory: use fewer workers or a smaller batch, lower prefetch_factor, "
    "and keep large lists out of the data set (arrays are shared between workers, lists are copied)",
    signal.SIGBUS: "the shared memory ran out: give the container more (docker run --shm-size=8g), use fewer workers, or "
    "torch.multiprocessing.set_sharing_strategy('file_system')",
    signal.SIGSEGV: "a library crashed in it: set num_workers=0 to see the call; files and databases must be opened in "
    "__getitem__, not in __init__, and cv2.setNumThreads(0) helps OpenCV",
    signal.SIGABRT: "a library gave up in it: set num_workers=0 to see which call it is",
}


def explain_killed(error: BaseException) -> Explained | None:
    text = str(error)
    if BOOTSTRAP in text:
        advice = "put the script's own code under if __name__ == '__main__': workers import the script anew"
        return Explained("worker", "a script that can be imported", "one that starts workers when it is imported", advice)
    match = KILLED.search(text)
    if match is None:
        return None
    workers, code = _crew(error.__traceback__)
    number = SIGNALS.get(match[2] or "") or (-code if code is not None and code < 0 else None)
    of = f"one of {workers} workers (num_workers={workers})" if workers else "a worker"
    if number is not None:
        got = f"{of} killed by {signal.Signals(number).name}"
    else:
        code = int(match[3]) if match[3] else code
        got = f"{of} gone" if code is None else f"{of} gone with exit code {code}"
    cure = CURES.get(signal.Signals(number)) if number is not None else None
    return Explained(
        "worker",
        "workers that live as long as their loader",
        got,
        cure or "set num_workers=0: the data set is then read in this process, and what ends the worker shows itself here",
    )


def raised_in(error: BaseException) -> tuple[Location | None, str] | None:
    """Of an exception that a worker passed on: the user's line, and its own message."""
    text = str(error)
    if RAISED.search(text) is None:
        return None
    lines = [(file, int(line)) for file, line in LINE.findall(text) if is_users(file)]
    last = text.strip().splitlines()[-1].removeprefix(f"{type(error).__name__}: ")
    return (locate(*lines[-1]) if lines else None), last


def _crew(trace: TracebackType | None) -> tuple[int | None, int | None]:
    """How many workers there were, and how the one that is gone ended."""
    while trace is not None:
        owner: Any = trace.tb_frame.f_locals.get("self")
        workers = getattr(owner, "_workers", None)
        if isinstance(workers, list) and workers and hasattr(workers[0], "exitcode"):
            codes = [w.exitcode for w in workers if w.exitcode is not None]
            return len(workers), next((c for c in codes if c), codes[0] if codes else None)
        trace = trace.tb_next
    return None, None
