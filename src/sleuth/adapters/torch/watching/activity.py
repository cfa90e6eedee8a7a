"""What every layer puts out during one forward that is looked at in full."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from sleuth import kernel
from sleuth.adapters.listening.patches import speak_up, tell
from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.measuring import measure_deeply, measure_quickly
from sleuth.adapters.torch.watching.unit_notes import UnitNotes
from sleuth.adapters.torch.watching.weights import Measured
from sleuth.core.observation import Precision
from sleuth.core.runtime.tree import leaves
from sleuth.core.statistics import merge

# A smaller output waits for the others and goes through the C code with them; a larger one is measured at once, so that
# no memory is held that activation checkpointing would free.
SMALL = 1 << 14


class LayerListener(Protocol):
    def note(self, module: nn.Module, output: Any) -> None: ...

    def give_up(self, error: Exception) -> None: ...

    def speak_up(self) -> None:
        """After each layer. May raise, where the user asked for it."""


RECORDING: list[LayerListener] = []
_plain_call: Any = None


def start_recording(listener: LayerListener) -> None:
    """Replaces nn.Module.__call__: a quarter of what a global hook costs, and pickling never sees it."""
    global _plain_call
    if listener in RECORDING:
        return
    if not RECORDING:
        _plain_call = nn.Module.__call__
        nn.Module.__call__ = _recorded_call  # type: ignore[method-assign]
    RECORDING.append(listener)


def stop_recording(listener: LayerListener) -> None:
    if listener in RECORDING:
        RECORDING.remove(listener)
        if not RECORDING and nn.Module.__call__ is _recorded_call:
            nn.Module.__call__ = _plain_call  # type: ignore[method-assign]


def replace_beneath(call: Any, other: Any) -> bool:
    """Is it this call that is recorded, replaced by somebody before us? Then it is the other one from now on."""
    global _plain_call
    if not RECORDING or _plain_call is not call:
        return False
    _plain_call = other
    return True


def _recorded_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
    output = _plain_call(self, *args, **kwargs)
    if not torch.compiler.is_compiling():
        tell(RECORDING, "note", self, output)
        speak_up(RECORDING)
    return output


class Activity:
    """Collects outputs of the layers it knows, by path. Only forwards that build a graph count."""

    def __init__(self, paths: Mapping[int, str], units: UnitNotes, give_up: Callable[[Exception], None]) -> None:
        self.give_up = give_up
        self._paths = paths  # id of a layer → path
        self._units = units
        self._waiting: list[tuple[str, torch.Tensor, int]] = []
        self._measured: list[Measured] = []
        self._dtypes: dict[str, torch.dtype] = {}
        self._told: dict[str, torch.dtype] = {}
        self.deep = False  # exponents, units and dtypes as well
        self.notes = 0

    def note(self, module: nn.Module, output: Any) -> None:
        path = self._paths.get(id(module))
        if path is None or not torch.is_grad_enabled():
            return
        # A forward inside a backward repeats one that was noted (reentrant checkpointing).
        if torch._C._current_graph_task_id() != -1:
            return
        self.notes += 1
        tensor = output if isinstance(output, torch.Tensor) else _first_tensor(output)
        if tensor is None:
            return
        if self.deep:
            self._dtypes[path] = tensor.dtype
            self._units.note(module, path, tensor)
        if tensor.numel() > SMALL:
            self._measure([(path, tensor)])
        else:
            self._waiting.append((path, tensor, tensor._version))

    def speak_up(self) -> None:
        """Nothing in an output is anybody's alarm here."""

    def flush(self) -> None:
        """Measures what waits, unless it was overwritten in place since: then its values are another layer's."""
        unchanged = [(path, tensor) for path, tensor, version in self._waiting if tensor._version == version]
        self._waiting = []
        self._measure(unchanged)

    def take(self) -> Measured:
        self.flush()
        measured, self._measured = self._measured, []
        self.notes = 0
        if not measured:
            return (), np.zeros((0, len(kernel.COLUMNS))), None
        paths = tuple(path for part, _, _ in measured for path in part)
        table = measured[0][1] if len(measured) == 1 else np.concatenate([rows for _, rows, _ in measured])
        bins = [b for _, _, b in measured if b is not None]
        exponents = np.concatenate(bins) if len(bins) == len(measured) else None
        return (paths, table, exponents) if len(set(paths)) == len(paths) else _merged(paths, table, exponents)

    def take_notes(self, step: int) -> tuple[Note, ...]:
        """Of a deep look; its dtypes only when they are new."""
        dtypes, self._dtypes = self._dtypes, {}
        notes: list[Note] = [note] if (note := self._units.take(step)) is not None else []
        if dtypes and dtypes != self._told:
            self._told = dtypes
            notes.append(lambda: [Precision(step, {path: str(d).removeprefix("torch.") for path, d in dtypes.items()})])
        return tuple(notes)

    def drop(self) -> None:
        self._waiting, self._measured, self._dtypes, self.notes = [], [], {}, 0
        self._units.drop()

    def _measure(self, outputs: list[tuple[str, torch.Tensor]]) -> None:
        if outputs:
            tensors = [tensor for _, tensor in outputs]
            table, exponents = measure_deeply(tensors) if self.deep else (measure_quickly(tensors), None)
            self._measured.append((tuple(path for path, _ in outputs), table, exponents))


def _merged(paths: tuple[str, ...], table: np.ndarray, exponents: np.ndarray | None) -> Measured:
    """A layer that was called more than once has one row."""
    places: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        places.setdefault(path, []).append(i)
    rows = [reduce(merge, table[own]) for own in places.values()]
    bins = None if exponents is None else np.stack([exponents[own].sum(axis=0) for own in places.values()])
    return tuple(places), np.stack(rows), bins


def _first_tensor(output: Any) -> torch.Tensor | None:
    return next((t for _, t in leaves(output, lambda t: isinstance(t, torch.Tensor))), None)
