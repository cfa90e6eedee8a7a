"""Calls that make Python wait for an accelerator: .item(), .cpu(), .tolist(), float(tensor), if tensor: …

Only where the model is on one: on the CPU a value is there when its operation returns, and nothing is put in place.
"""

import functools
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from sleuth.adapters.listening.patches import Function, Patch, tell
from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.core.location import Location
from sleuth.core.observation import Absent, Synchronisation

WAITING = {
    "item": ".item()",
    "tolist": ".tolist()",
    "cpu": ".cpu()",
    "__float__": "float(…)",
    "__int__": "int(…)",
    "__bool__": "if …:",
}
ON_THE_CPU = "the model computes on the CPU, where no call has to wait for a device"
OURS = str(Path(__file__).parents[4])


class Synchronisations(LoopRecorder):
    """All watches of the process share the patches."""

    _patches: ClassVar[list[Patch]] = []
    _counting: ClassVar[list["Synchronisations"]] = []

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._calls: Counter[str] = Counter()
        self._lines: Counter[tuple[int, int]] = Counter()
        self._known: dict[tuple[int, int], Location | None] = {}
        self._thread = threading.get_ident()
        self._open = False
        self._failure: Exception | None = None
        self._wanted = any(self.is_far(p) for p in loop.model.parameters())
        self._notes: list[Note] = [] if self._wanted else [Absent(Synchronisation, ON_THE_CPU)]

    @staticmethod
    def is_far(tensor: torch.Tensor) -> bool:
        return tensor.device.type not in ("cpu", "meta")

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self._wanted and not self._open:
            self._open = True
            if not self._counting:
                self._patches.extend(
                    Patch(torch.Tensor, name, functools.partial(_waiting, said)) for name, said in WAITING.items()
                )
            self._counting.append(self)

    def heard(self, said: str, tensor: torch.Tensor, frame: Any) -> None:
        if threading.get_ident() != self._thread or not self.is_far(tensor) or frame.f_code.co_filename.startswith(OURS):
            return
        self._calls[said] += 1
        place = (id(frame.f_code), frame.f_lasti)
        self._lines[place] += 1
        if place not in self._known:
            self._known[place] = users_line(frame)

    def give_up(self, error: Exception) -> None:
        self._failure = error

    def speak_up(self) -> None:
        """Nothing here is anybody's alarm."""

    def after_step(self, number: int) -> None:
        if self._failure is not None:  # here it switches this recorder off, and is named
            self.close()
            raise self._failure
        if self._open:
            most = max(self._lines, key=self._lines.__getitem__) if self._lines else None
            location = None if most is None else self._known[most]
            self._notes.append(Synchronisation(self.loop.steps, dict(self._calls), location))
            self.resumed()

    def resumed(self) -> None:
        self._calls, self._lines = Counter(), Counter()

    def take(self) -> Sequence[Note]:
        if not self._notes:
            return ()
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        if self._open:
            self._open = False
            self._counting.remove(self)
            while self._patches and not self._counting:
                self._patches.pop().remove()


def _waiting(said: str, original: Function) -> Function:
    def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            tell(Synchronisations._counting, "heard", said, tensor, sys._getframe(1))
        return original(tensor, *args, **kwargs)

    return call
