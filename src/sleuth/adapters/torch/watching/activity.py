"""What every layer puts out during one forward that is looked at in full."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from sleuth import kernel
from sleuth.adapters.torch.measuring import measure_quickly
from sleuth.core.statistics import merge
from sleuth.core.tree import leaves

# A smaller output waits for the others and goes through the C code with them; a larger one is measured at once, so that
# no memory is held that activation checkpointing would free.
SMALL = 1 << 14

RECORDING: list["Activity"] = []
_plain_call: Any = None


def start_recording(activity: "Activity") -> None:
    """Replaces nn.Module.__call__: a quarter of what a global hook costs, and pickling never sees it."""
    global _plain_call
    if not RECORDING:
        _plain_call = nn.Module.__call__
        nn.Module.__call__ = _recorded_call  # type: ignore[method-assign]
    RECORDING.append(activity)


def stop_recording(activity: "Activity") -> None:
    if activity in RECORDING:
        RECORDING.remove(activity)
        if not RECORDING and nn.Module.__call__ is _recorded_call:
            nn.Module.__call__ = _plain_call  # type: ignore[method-assign]


def _recorded_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
    output = _plain_call(self, *args, **kwargs)
    if not torch.compiler.is_compiling():
        for activity in RECORDING:
            activity.note(self, output)
    return output


class Activity:
    """Collects outputs of the layers it knows, by path. Only forwards that build a graph count."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self._paths = paths  # id of a layer → path
        self._waiting: list[tuple[str, torch.Tensor, int]] = []
        self._rows: dict[str, np.ndarray] = {}
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
        if tensor.numel() > SMALL:
            self._add(path, measure_quickly([tensor])[0])
        else:
            self._waiting.append((path, tensor, tensor._version))

    def flush(self) -> None:
        """Measures what waits, unless it was overwritten in place since: then its values are another layer's."""
        unchanged = [(path, tensor) for path, tensor, version in self._waiting if tensor._version == version]
        self._waiting = []
        for (path, _), row in zip(unchanged, measure_quickly([t for _, t in unchanged]), strict=True):
            self._add(path, row)

    def take(self) -> tuple[tuple[str, ...], np.ndarray]:
        self.flush()
        rows, self._rows = self._rows, {}
        self.notes = 0
        table = np.stack(list(rows.values())) if rows else np.zeros((0, len(kernel.COLUMNS)))
        return tuple(rows), table

    def drop(self) -> None:
        self._waiting, self._rows, self.notes = [], {}, 0

    def _add(self, path: str, row: np.ndarray) -> None:
        known = self._rows.get(path)
        self._rows[path] = row if known is None else merge(known, row)


def _first_tensor(output: Any) -> torch.Tensor | None:
    return next((t for _, t in leaves(output, lambda t: isinstance(t, torch.Tensor))), None)
