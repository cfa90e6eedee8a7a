"""The user's line behind a call that a listener of ours hears."""

import os
import sys
from pathlib import Path
from types import FrameType

from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import DONE_AGAIN, SLEUTH, is_users

HERE = str(Path(__file__).parent) + os.sep
LISTENING = str(Path(__file__).parent.parent / "listening") + os.sep
# Frames of ours that stand between the user's lines; beyond any other it was we who called.
BETWEEN = (
    f"{HERE}pass_listener.py",
    f"{HERE}created_at.py",
    f"{HERE}user_line.py",
    f"{HERE}operations.py",
    LISTENING,
    f"{HERE}watching{os.sep}",
    f"{HERE}trees{os.sep}",
)


def users_line() -> Location | None:
    if DONE_AGAIN:
        return DONE_AGAIN[-1]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users(file):
            return locate(file, frame.f_lineno)
        if file.startswith(SLEUTH) and not file.startswith(BETWEEN):
            return None
        frame = frame.f_back
    return None
