"""Numbers that a loop keeps in its own variables: the loss of a loop that computes it in line, and the learning rate."""

import re
from types import FrameType
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import WORDS
from sleuth.adapters.common.manual_loop.learning_rate import is_number
from sleuth.adapters.common.manual_loop.loop_scope import LOSS

# Of another data set, or of more than one step.
ELSEWHERE = re.compile(r"val|test|best|total|avg|average|mean|running|epoch|prev|last|min|sum|history|log", re.I)


class Variables:
    def __init__(self) -> None:
        self._last: Any = None

    def loss(self, frame: FrameType) -> float | None:
        """None where no variable is called like a loss, where several are, or where it was not computed anew."""
        name, value = self._loss_in(frame)
        if name is None or value is self._last:
            return None
        self._last = value
        return float(np.asarray(value).reshape(()))

    def _loss_in(self, frame: FrameType) -> tuple[str | None, Any]:
        found = [(k, v) for k, v in frame.f_locals.items() if LOSS.search(k) and not ELSEWHERE.search(k) and _is_value(v)]
        return found[0] if len(found) == 1 else (None, None)

    def rate(self, frame: FrameType) -> float | None:
        found = {k: v for k, v in frame.f_locals.items() if k.lower() in WORDS["rate"] and is_number(v)}
        return float(next(iter(found.values()))) if len(found) == 1 else None


def _is_value(thing: Any) -> bool:
    if isinstance(thing, np.ndarray):
        return thing.size == 1 and thing.dtype.kind == "f"
    return isinstance(thing, float | np.floating)
