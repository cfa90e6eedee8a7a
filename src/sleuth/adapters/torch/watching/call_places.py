"""From which line of the user's loop something is called. The line is looked up once a place."""

import sys
from pathlib import Path
from types import CodeType, FrameType

from sleuth.adapters import listening
from sleuth.adapters.torch.place import is_users
from sleuth.core.location import Location, locate
from sleuth.core.observation.calls import CallKind

# Whatever lies in these folders stands between the user's call and us.
OURS = (str(Path(__file__).parent), *listening.__path__)

# Of a line that runs as a function of its own.
INNER = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")

# What was called, its line, and where that line's function begins.
Place = tuple[CallKind, Location | None, Location | None]


class Places:
    def __init__(self) -> None:
        self._known: set[tuple[CallKind, int, int]] = set()
        self.found: list[Place] = []  # since they were last taken
        self.lines: dict[str, Location | None] = {}  # by kind, the latest that was new
        self.validating: list[CodeType] = []  # from which the model was called in training mode without a graph

    def note(self, kind: CallKind, frame: FrameType, line: Location | None = None) -> None:
        """`line`: where that is known to be another one than the frame's."""
        # The hash of a code object is slow; its address does.
        key = (kind, id(frame.f_code), frame.f_lasti)
        if key not in self._known:
            self._known.add(key)
            if kind == CallKind.VALIDATE_IN_TRAIN:
                self.validating.append(frame.f_code)
            self.lines[kind] = line or users_line(frame)
            self.found.append((kind, self.lines[kind], users_function(frame)))

    def take(self) -> tuple[Place, ...]:
        found, self.found = self.found, []
        return tuple(found)


def users_line(frame: FrameType | None) -> Location | None:
    """The innermost line above that is neither ours nor a library's."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return locate(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def users_function(frame: FrameType | None) -> Location | None:
    """Where the function begins that the line is in."""
    while frame is not None and (frame.f_code.co_name in INNER or not is_users(frame.f_code.co_filename)):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name == "<module>":
        return None
    return locate(frame.f_code.co_filename, frame.f_code.co_firstlineno)


def calling_frame() -> FrameType:
    """Of whoever called into one of our patches."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(OURS) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_running(frame_number: int) -> bool:
    """Is the call with this frame still going on, around the one that begins? That one's own frame may have the number of one
    that is gone."""
    frame = calling_frame().f_back
    while frame is not None and id(frame) != frame_number:
        frame = frame.f_back
    return frame is not None
