"""Which rectified units fire, at steps ever farther apart: full looks are too few in a short training to see units die."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.architecture import ACTIVATIONS, family_of
from sleuth.adapters.torch.compat import PRIVATE
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.unit_notes import UnitNotes

# Where these say zero their slope is zero as well.
RECTIFIERS = ("relu", "relu6", "hardshrink", "softshrink")
# The first full look has seen them as they were at the start.
FIRST = 64
# The next look waits for a sixth of the steps so far: some sixty looks in a million steps.
PATIENCE = 6


class Firing(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        leaves = [(path, module) for path, module in loop.model.named_modules() if path and not module._modules]
        firing = {id(module) for _, module in leaves if ACTIVATIONS.get(type(module)) in RECTIFIERS}
        # What stands before an activation tells which axis its units are on.
        weighty = {id(module) for _, module in leaves if family_of(module) in ("linear", "conv")}
        self._paths = {id(module): path for path, module in leaves if id(module) in firing | weighty} if firing else {}
        self._units = UnitNotes(loop.model)
        self._next = FIRST
        self._hook: RemovableHandle | None = None
        self._failure: Exception | None = None

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self.loop.steps < self._next or not self._paths or not torch.is_grad_enabled():
            return
        if _has_compiled():
            self._paths = {}
            return
        self._stop()
        # For one call, replacing nn.Module.__call__ costs more: every subclass has to look it up anew.
        self._hook = nn.modules.module.register_module_forward_hook(self._note)

    def _note(self, module: nn.Module, args: Any, output: Any) -> None:
        """From inside the user's forward: nothing may come out of here."""
        path = self._paths.get(id(module))
        if path is None or not isinstance(output, torch.Tensor):
            return
        try:
            self._units.note(module, path, output)
        except Exception as error:
            self._paths, self._failure = {}, error

    def output(self, output: Any) -> None:
        if self._hook is not None:
            self._stop()

    def take(self) -> Sequence[Note]:
        if self._failure is not None:  # here it switches this recorder off, and is named
            self._stop()
            raise self._failure
        step = self.loop.steps
        if step < self._next:
            return ()
        self._stop()
        note = self._units.take(step) if self._paths else None
        if note is None:
            return ()
        self._next = step + step // PATIENCE
        return (note,)

    def close(self) -> None:
        self._stop()
        self._units.drop()

    def _stop(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None


def _has_compiled() -> bool:
    """What torch.compile made is guarded by the hooks that it met: with another one it may compile anew."""
    counters = PRIVATE.if_imported("torch._dynamo.utils.counters")
    return counters is not None and counters["stats"]["unique_graphs"] > 0
