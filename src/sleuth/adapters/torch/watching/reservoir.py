"""Batches that passed by, copied to the host's memory."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from sleuth.adapters.common.reservoir import Reservoir, rows_that_fit
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.core.contract.kept import Passed
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts

PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)


class HostReservoir(Reservoir[Passed]):
    """Copies in the host's memory, which go back to the devices of the first batch when they are taken."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes)
        self._devices: list[torch.device] = []

    def keep(self, place: int, passed: Passed) -> bool:
        """False: there is no room for it."""
        return self.put(place, passed, size_of(passed.parts.raw))

    def note_devices(self, tree: Any) -> None:
        self._devices = self._devices or [t.device for _, t in leaves(tree, is_tensor)]

    def taken(self) -> list[Passed]:
        """Where the model expects them."""
        if all(device.type == "cpu" for device in self._devices):
            return self.items
        return [replace(p, parts=_moved(p.parts, self._devices)) for p in self.items]


def size_of(tree: Any) -> int:
    return sum(t.nbytes for _, t in leaves(tree, is_tensor))


def parts_of(inputs: Any, target: torch.Tensor | None, *, first: bool = False) -> Parts | None:
    """A copy without graph in the host's memory; None: this is too large for a single sample, or of a kind that is not kept."""
    tree = (inputs, target)
    tensors = [t for _, t in leaves(tree, is_tensor)]
    if not tensors or not all(type(t) is torch.Tensor and t.layout is torch.strided for t in tensors) or not is_plain(tree):
        return None
    rows = rows_that_fit(size_of(tree), {t.shape[0] if t.dim() else 0 for t in tensors}, first=first)
    if rows == 0:
        return None
    given, wanted = map_arrays(tree, lambda t: _copy(t, rows), is_tensor)
    return Parts(given, wanted, (given, wanted))


def with_target(parts: Parts, target: torch.Tensor, rows: int) -> Parts:
    wanted = _copy(target, rows)
    return Parts(parts.inputs, wanted, (parts.inputs, wanted))


def inputs_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """In the form in which a probe calls the model with them."""
    if kwargs:
        return dict(kwargs) if not args else (*args, dict(kwargs))
    return args[0] if len(args) == 1 and is_tensor(args[0]) else args


def call_of(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that `inputs_of` was given."""
    if isinstance(inputs, dict):
        return (), inputs
    if not isinstance(inputs, tuple):
        return (inputs,), {}
    return (inputs[:-1], inputs[-1]) if inputs and isinstance(inputs[-1], dict) else (inputs, {})


def rows_of(parts: Parts) -> int:
    return next((len(t) for _, t in leaves(parts.inputs, is_tensor) if t.dim()), 0)


def _copy(tensor: torch.Tensor, rows: int | None) -> torch.Tensor:
    return (tensor.detach() if rows is None else tensor.detach()[:rows]).to("cpu", copy=True)


def is_plain(tree: Any) -> bool:
    """Beside tensors only values: objects of the user's are not held on to."""
    if is_tensor(tree) or isinstance(tree, PLAIN):
        return True
    if isinstance(tree, dict):
        return all(map(is_plain, tree.values()))
    return isinstance(tree, list | tuple) and all(map(is_plain, tree))


def _moved(parts: Parts, devices: list[torch.device]) -> Parts:
    waiting = iter(devices)
    given, wanted = map_arrays(parts.raw, lambda t: t.to(next(waiting, t.device)), is_tensor)
    return Parts(given, wanted, (given, wanted))
