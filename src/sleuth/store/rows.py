"""Steps and frames as rows of numbers and back: a long run has millions of them, and most of what they say is always the same."""

import dataclasses
import struct
import zlib
from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from sleuth.core.observation import Frame, Role, Step
from sleuth.core.statistics import COLUMNS, EXPONENT_BINS, pack, unpack

NUMBERS = ("step", "optimiser", "loss", "lr", "gradient_norm")
REST = tuple(f.name for f in dataclasses.fields(Step) if f.name not in (*NUMBERS, "seconds"))
_numbers_of, _rest_of = attrgetter(*NUMBERS), attrgetter(*REST)
LARGEST = 2**62  # of SQLite's whole numbers, with room

Row = tuple[Any, ...]
# Texts that come again and again are kept once: from a key, and how to make the thing, to the number of its text, and back.
Keep = Callable[[Hashable, Callable[[], Any]], int]
Recall = Callable[[int], Any]


class StepRows:
    """There is one a step of the training: what is as in the step before is not even looked up."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._before: tuple[Any, ...] = ()
        self._text = 0

    def row(self, step: Step) -> Row:
        numbers, seconds = _numbers_of(step), step.seconds
        rest = (*_rest_of(step), *seconds)
        if not all(map(_is_plain, numbers)):
            return self._odd(step, numbers)
        if rest != self._before:
            self._text = self._kept(step, ())
            self._before = rest
        return (*numbers, struct.pack(f"<{len(seconds)}d", *seconds.values()), self._text)

    def _odd(self, step: Step, numbers: tuple[Any, ...]) -> Row:
        odd = tuple(name for name, value in zip(NUMBERS, numbers, strict=True) if not _is_plain(value))
        plain = tuple(None if name in odd else value for name, value in zip(NUMBERS, numbers, strict=True))
        return (*plain, struct.pack(f"<{len(step.seconds)}d", *step.seconds.values()), self._kept(step, odd))

    def _kept(self, step: Step, odd: tuple[str, ...]) -> int:
        values = vars(step)
        key = (odd, tuple(values[name] for name in odd), *map(_key, _rest_of(step)), *step.seconds)
        return self._keep(key, lambda: {**{name: values[name] for name in (*REST, *odd)}, "phases": tuple(step.seconds)})


def step_of(row: Row, recall: Recall) -> Step:
    *numbers, seconds, rest = row
    known: dict[str, Any] = dict(recall(rest))
    phases = known.pop("phases")
    took: Mapping[str, float] = dict(zip(phases, np.frombuffer(seconds, dtype="<f8").tolist(), strict=True))
    # A file of an earlier version may hold what a step has no more.
    known = {name: value for name, value in known.items() if name in REST or name in NUMBERS}
    return Step(**{**dict(zip(NUMBERS, numbers, strict=True)), **known, "seconds": took})


def frame_row(frame: Frame, keep: Keep, packed: np.ndarray | None = None) -> Row:
    form = pack(frame.table) if packed is None else packed
    body = form.astype("<f4", copy=False).tobytes()
    # Most bins of most tensors are empty: what is left of them after packing is a tenth.
    exponents = None if frame.exponents is None else zlib.compress(frame.exponents.astype("<i4").tobytes(), 1)
    return frame.step, frame.role.value, keep(frame.paths, lambda: frame.paths), frame.sampled, body, exponents


def frame_of(row: Row, recall: Recall) -> Frame:
    step, role, paths, sampled, body, exponents = row
    table = table_of(body)
    return Frame(step, Role(role), recall(paths), table, _bins(exponents, len(table)), sampled)


def table_of(body: bytes) -> np.ndarray:
    return unpack(np.frombuffer(body, dtype="<f4").reshape(-1, len(COLUMNS)))


def _bins(exponents: bytes | None, tensors: int) -> np.ndarray | None:
    if exponents is None:
        return None
    size = tensors * EXPONENT_BINS * np.dtype("<i4").itemsize
    # Version 1 did not compress. A stranger's file may unpack to anything: never to more than there can be.
    plain = exponents if len(exponents) == size else zlib.decompressobj().decompress(exponents, size)
    return np.frombuffer(plain, dtype="<i4").reshape(tensors, EXPONENT_BINS)


def _key(value: Any) -> Hashable:
    # Almost always a plain dictionary or a tuple of words.
    return tuple(value.items()) if isinstance(value, dict) else value if isinstance(value, Hashable) else repr(value)


def _is_plain(value: Any) -> bool:
    """Does a column of SQLite give it back as it is? It has no NaN, and whole numbers end at 64 bits."""
    if isinstance(value, float):
        return value == value
    return value is None or (type(value) is int and -LARGEST < value < LARGEST)
