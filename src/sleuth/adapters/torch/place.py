"""The user's line behind what is happening now."""

import sys
import sysconfig
import traceback
from pathlib import Path
from types import FrameType, TracebackType

import torch

import sleuth
from sleuth.core.location import Location, locate

TORCH = str(Path(torch.__file__).parent)
SLEUTH = str(Path(sleuth.__file__).parent)
LIBRARIES = tuple(sysconfig.get_paths()[key] for key in ("purelib", "platlib", "stdlib"))


def is_users(file: str) -> bool:
    return not file.startswith((TORCH, SLEUTH, "<", *LIBRARIES))


def current_location() -> Location | None:
    """The innermost user's line below the sleuth function that runs the user's code, seen from a listener."""
    frame: FrameType | None = sys._getframe(1)
    here = frame.f_code.co_filename if frame else ""
    while frame is not None and frame.f_code.co_filename in (here, __file__):
        frame = frame.f_back
    while frame is not None and not frame.f_code.co_filename.startswith(SLEUTH):
        file = frame.f_code.co_filename
        if is_users(file):
            return locate(file, frame.f_lineno)
        frame = frame.f_back
    return None


def location_of(trace: TracebackType | None) -> Location | None:
    """The innermost user's line of a traceback, below sleuth's own frames."""
    frames = traceback.extract_tb(trace)
    last_own = max((i for i, f in enumerate(frames) if f.filename.startswith(SLEUTH)), default=-1)
    for frame in reversed(frames[last_own + 1 :]):
        if is_users(frame.filename) and frame.lineno is not None:
            return locate(frame.filename, frame.lineno)
    return None
