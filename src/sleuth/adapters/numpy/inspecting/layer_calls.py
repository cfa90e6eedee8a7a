"""One pass through a hand-written model, call by call of its layers: a profile function hears them, nothing is wrapped."""

import dis
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from sleuth.adapters.numpy.model_parts import layers
from sleuth.core.contract.inspection import Door
from sleuth.core.runtime.place import is_users
from sleuth.core.runtime.tree import leaves

WAYS = {"forward": "forward", "__call__": "forward", "backward": "backward", "backprop": "backward"}
# Each is a call into NumPy, or of a function that goes there.
COUNTED = {code for name, code in dis.opmap.items() if name.startswith(("CALL", "BINARY_OP")) or name == "BINARY_SUBSCR"}


@dataclass
class Note:
    path: str
    way: str  # forward or backward
    parent: int | None
    inputs: tuple[Door, ...] = ()
    outputs: tuple[Door, ...] = ()
    output: Any = None  # the arrays themselves, while somebody looks at them
    given: Any = None
    seconds: float = 0.0
    operations: int = 0
    finished: bool = False


class Visitor:
    def __init__(self, model: Any) -> None:
        self._layers = {id(layer): path for path, layer in layers(model)}
        self._layers[id(getattr(model, "root", None) or model)] = ""
        self._layers[id(model)] = ""
        self.notes: list[Note] = []
        self._open: list[tuple[FrameType, int]] = []

    @contextmanager
    def following(self) -> Iterator["Visitor"]:
        """A profiler that is already there rests meanwhile, and is put back on every way out."""
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield self
        finally:
            sys.setprofile(before)
            self._open.clear()

    @contextmanager
    def counting(self) -> Iterator["Visitor"]:
        """The same, and how many operations the user's own lines call: slow."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            with self.following():
                yield self
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, value: Any) -> Callable[..., Any] | None:
        if not is_users(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code = frame.f_code.co_code

        def opcode(frame: FrameType, event: str, value: Any) -> Callable[..., Any]:
            if event == "opcode" and self._open and code[frame.f_lasti] in COUNTED:
                self.notes[self._open[-1][1]].operations += 1
            return opcode

        return opcode

    def _event(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call" and frame.f_code.co_name in WAYS:
            self._begin(frame)
        elif event == "return" and self._open and self._open[-1][0] is frame:
            note = self.notes[self._open.pop()[1]]
            note.seconds += time.perf_counter()
            note.output, note.finished = value, value is not None
            note.outputs = doors(value)

    def _begin(self, frame: FrameType) -> None:
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        owner = frame.f_locals.get(names[0]) if names else None
        path = self._layers.get(id(owner))
        way = WAYS[frame.f_code.co_name]
        # __call__ around forward, and a method of a parent class, are the same call.
        inner = self._open and (self.notes[self._open[-1][1]].path, self.notes[self._open[-1][1]].way) == (path, way)
        if path is None or inner:
            return
        given = {name: frame.f_locals.get(name) for name in names[1:]}
        parent = self._open[-1][1] if self._open else None
        inputs = tuple(door for name, thing in given.items() for door in doors(thing, name))
        self.notes.append(Note(path, way, parent, inputs, given=next(iter(given.values()), None), seconds=-time.perf_counter()))
        self._open.append((frame, len(self.notes) - 1))


def doors(tree: Any, name: str = "") -> tuple[Door, ...]:
    found = leaves(tree, lambda a: isinstance(a, np.ndarray))
    return tuple(Door(".".join(filter(None, (name, str(path)))), a.shape, str(a.dtype)) for path, a in found)
