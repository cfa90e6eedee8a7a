"""From which line of the user's each node of the graph comes, the model's own operations included, on the few steps that are
heard op by op."""

import functools
import inspect
import sys
import weakref
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.place import is_users
from sleuth.adapters.torch.watching.created_at import made_at
from sleuth.core.location import Location, Spot

# A longer graph is one of many steps in time: the end of it counts.
MOST_NODES = 4096
MOST_FRAMES = 64
CHAIN = nn.Sequential.forward.__code__


@dataclass(frozen=True)
class Line:
    spot: Spot
    layer: "weakref.ref[nn.Module] | None"  # of torch's, that did it
    chained: bool  # a container of torch's called it: no line of the user's does

    @property
    def written(self) -> Location | None:
        """The line with the operation itself."""
        return None if self.chained else self.spot.location

    @property
    def location(self) -> Location | None:
        """The line to change: where a container calls the layer, the one that made it."""
        if not self.chained:
            return self.spot.location
        layer = None if self.layer is None else self.layer()
        return None if layer is None else made_at(layer)


class Lines:
    def __init__(self) -> None:
        self._found: dict[int, Line] = {}

    def note(self, output: Any) -> None:
        """Called by whoever the user's code called."""
        tensor = output[0] if isinstance(output, tuple) and output else output
        node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
        if node is not None:
            line = _line(sys._getframe(2))
            if line is not None:
                if len(self._found) >= MOST_NODES:
                    del self._found[next(iter(self._found))]
                self._found[node._sequence_nr()] = line

    def find(self, number: int) -> Line | None:
        return self._found.get(number)


def _line(frame: FrameType | None) -> Line | None:
    layer, chained = None, False
    for _ in range(MOST_FRAMES):
        if frame is None:
            return None
        code = frame.f_code
        if _is_users(code.co_filename):
            return Line(Spot(code, frame.f_lasti), layer, chained)
        if code is CHAIN:
            chained = True
        elif layer is None and code.co_name == "forward":
            layer = _owner(frame)
        frame = frame.f_back
    return None


def _owner(frame: FrameType) -> "weakref.ref[nn.Module] | None":
    values = frame.f_locals
    owner = values.get("self")
    # Before Python 3.13 the frame keeps the dictionary, and with it what the user has let go meanwhile.
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13):
        values.clear()
    return weakref.ref(owner) if isinstance(owner, nn.Module) else None


_is_users = functools.lru_cache(maxsize=1024)(is_users)
