"""The user's line behind what is happening now."""

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType

from sleuth.core.location import Location, locate

SLEUTH = str(Path(__file__).parents[2]) + os.sep
LIBRARIES = tuple(sysconfig.get_paths()[key] for key in ("purelib", "platlib", "stdlib"))

# While a line of the user's is done again by us: which one.
DONE_AGAIN: list[Location] = []


@contextmanager
def done_again(line: Location | None) -> Iterator[None]:
    if line is None:
        yield
        return
    DONE_AGAIN.append(line)
    try:
        yield
    finally:
        DONE_AGAIN.pop()


def is_users(file: str, foreign: tuple[str, ...] = ()) -> bool:
    """`foreign`: folders of a framework that may be installed elsewhere than among the libraries."""
    # A cell of a notebook has no file.
    return file.startswith("<ipython-input") or not file.startswith((SLEUTH, "<", *LIBRARIES, *foreign))


def current_location(foreign: tuple[str, ...] = ()) -> Location | None:
    """The innermost user's line below the sleuth function that runs the user's code, seen from a listener."""
    if DONE_AGAIN:
        return DONE_AGAIN[-1]
    frame: FrameType | None = sys._getframe(1)
    here = frame.f_code.co_filename if frame else ""
    while frame is not None and frame.f_code.co_filename == here:
        frame = frame.f_back
    while frame is not None and not frame.f_code.co_filename.startswith(SLEUTH):
        file = frame.f_code.co_filename
        if is_users(file, foreign):
            return locate(file, frame.f_lineno)
        frame = frame.f_back
    return None


def location_of(trace: TracebackType | None, foreign: tuple[str, ...] = ()) -> Location | None:
    """The innermost user's line of a traceback, below the sleuth frame that ran the user's code."""
    frames = traceback.extract_tb(trace)
    # The first one: a listener of ours may stand again between the user's line and the framework.
    own = next((i for i, f in enumerate(frames) if f.filename.startswith(SLEUTH)), -1)
    for frame in reversed(frames[own + 1 :]):
        if is_users(frame.filename, foreign) and frame.lineno is not None:
            return locate(frame.filename, frame.lineno)
    return None


def innermost(trace: TracebackType | None, foreign: tuple[str, ...] = ()) -> Location | None:
    """The last line of the user's own in a traceback, whoever stands above or between."""
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_users(file, foreign):
            found = (file, trace.tb_lineno)
        trace = trace.tb_next
    return None if found is None else locate(*found)
