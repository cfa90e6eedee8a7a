"""A script's exception as Python would have shown it: without the frames that are ours."""

import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

SLEUTH = str(Path(__file__).parents[1]) + os.sep


def show(error: BaseException) -> None:
    """Through the script's own hook, where it has set one."""
    leave_out_ours(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Exception as another:
        print("Error in sys.excepthook:", file=sys.stderr)
        leave_out_ours(another)
        traceback.print_exception(another)
        print("\nOriginal exception was:", file=sys.stderr)
        traceback.print_exception(error)


def leave_out_ours(error: BaseException) -> None:
    for one in _chain(error):
        one.__traceback__ = _without_ours(one.__traceback__)


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    entries = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(SLEUTH):
            entries.append(trace)
        trace = trace.tb_next
    shown: TracebackType | None = None
    for entry in reversed(entries):
        shown = TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shown


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inside = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [e for e in (one.__cause__, one.__context__, *inside) if e is not None]
