"""What the user calls the data of the moment: `for split in ("train", "val")`, `evaluate(model, "test")`.

A word alone may be a setting that nothing depends on. A variable that was seen to hold both kinds of words tells them apart.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

from sleuth.adapters.torch.place import is_users
from sleuth.core.observation import Split

WORDS = {
    **dict.fromkeys(("train", "training", "trn"), Split.TRAIN),
    **dict.fromkeys(("val", "valid", "validation", "dev", "test", "eval"), Split.VALIDATION),
}
# A model's own functions may lie between the loop and us.
MOST_FRAMES = 24
MOST_REMEMBERED = 64
# Whoever uses these may hold the very dictionary that reading a frame's variables would change.
READS_OWN_VARIABLES = frozenset(("locals", "vars", "_getframe", "currentframe"))

Variable = tuple[int, str]  # number of the function, name


class Word(NamedTuple):
    variable: Variable
    split: Split


class SplitWords:
    def __init__(self) -> None:
        self._seen: dict[Variable, set[Split]] = {}
        self._trained: set[Variable] = set()

    def trained(self, frame: FrameType | None) -> None:
        """A backward comes from here: what says `train` now says nothing about an evaluation in the midst of it."""
        self._trained.update(word.variable for word in _words(frame) if word.split is Split.TRAIN)

    def heard(self, frame: FrameType | None) -> Word | None:
        """The innermost variable of the user's functions that holds such a word."""
        for word in _words(frame):
            if word.split is Split.VALIDATION or word.variable not in self._trained:
                if len(self._seen) < MOST_REMEMBERED:
                    self._seen.setdefault(word.variable, set()).add(word.split)
                return word
        return None

    def tells(self, variable: Variable) -> bool:
        return len(self._seen.get(variable, ())) > 1


def call_path(frame: FrameType | None) -> tuple[int, ...]:
    """The user's calls that led here."""
    return tuple(number for own in _users_frames(frame) for number in (id(own.f_code), own.f_lasti))


def _words(frame: FrameType | None) -> Iterator[Word]:
    for own in _users_frames(frame):
        found = _in(own)
        if found is not None:
            yield found


def _users_frames(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _in(frame: FrameType) -> Word | None:
    """None also where there are both."""
    code = frame.f_code
    found = [Word((id(code), name), WORDS[word]) for name, word in _strings(code, frame) if word in WORDS]
    return found[0] if len({word.split for word in found}) == 1 else None


def _strings(code: CodeType, frame: FrameType) -> list[tuple[str, str]]:
    own = bool(code.co_flags & inspect.CO_OPTIMIZED)  # a function's; else the variables are the module's own dictionary
    if own and not READS_OWN_VARIABLES.isdisjoint(code.co_names):
        return []
    values: Mapping[str, Any] = frame.f_locals
    names = (*code.co_varnames, *code.co_cellvars) if own else code.co_names
    found = [(name, value.lower()) for name in names if type(value := values.get(name)) is str]
    # Before Python 3.13 it is a copy that the frame keeps, and with it arrays that the user has let go.
    if own and sys.version_info < (3, 13) and isinstance(values, dict):
        values.clear()
    return found
