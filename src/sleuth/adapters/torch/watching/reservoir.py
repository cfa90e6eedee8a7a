"""Batches that passed by, in bounded memory: the first ones, then a fair choice of all that came later."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.core.contract.kept import Passed
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts

MOST_BATCHES = 192
# The first ones follow each other: they tell in which order samples come. They may take half of the room.
FIRST_BATCHES = 64
# Of larger batches the first rows are kept; of the very first one more, as experiments with a single batch use it.
MOST_BATCH_BYTES = 1 << 20
MOST_FIRST_BYTES = 8 << 20

PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)


class Reservoir:
    def __init__(self, most_bytes: int) -> None:
        self.batches: list[Passed] = []
        self.bytes = 0
        self._most_bytes = most_bytes
        self._first: int | None = None  # how many there are of the first ones; None: there may be more
        self._is_full = False
        self._later = 0  # batches that were met after these
        self._devices: list[torch.device] = []
        self._choose = random.Random(0)  # our own: the user's generators are not touched

    def wants(self) -> int | None:
        """The place of the next batch; None: it is let go."""
        count = len(self.batches)
        if self._first is None:
            if count < FIRST_BATCHES and self.bytes < self._most_bytes // 2:
                return count
            self._first = count
        self._later += 1
        if count < MOST_BATCHES and not self._is_full:
            return count
        # Vitter's algorithm R, over those after the first.
        place = self._first + self._choose.randrange(self._later)
        return place if place < count else None

    def put(self, place: int, passed: Passed) -> bool:
        replaced = size_of(self.batches[place].parts.raw) if place < len(self.batches) else 0
        bytes_then = self.bytes - replaced + size_of(passed.parts.raw)
        if bytes_then > self._most_bytes:
            self._is_full = True
            return False
        self.bytes = bytes_then
        self.batches[place : place + 1] = [passed]
        return True

    def note_devices(self, tree: Any) -> None:
        self._devices = self._devices or [t.device for _, t in leaves(tree, is_tensor)]

    def taken(self) -> list[Passed]:
        """Where the model expects them. Until the end they wait in the host's memory."""
        if all(device.type == "cpu" for device in self._devices):
            return self.batches
        return [replace(p, parts=_moved(p.parts, self._devices)) for p in self.batches]


def size_of(tree: Any) -> int:
    return sum(t.nbytes for _, t in leaves(tree, is_tensor))


def parts_of(inputs: Any, target: torch.Tensor | None, *, first: bool = False) -> Parts | None:
    """A copy without graph in the host's memory; None: this is too large for a single sample, or of a kind that is not kept."""
    tree = (inputs, target)
    tensors = [t for _, t in leaves(tree, is_tensor)]
    if not tensors or not all(type(t) is torch.Tensor and t.layout is torch.strided for t in tensors) or not _is_plain(tree):
        return None
    size, most = size_of(tree), MOST_FIRST_BYTES if first else MOST_BATCH_BYTES
    rows = None
    if size > most:
        lengths = {t.shape[0] if t.dim() else 0 for t in tensors}
        rows = lengths.pop() * most // size if len(lengths) == 1 else 0
        if not rows:
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


def rows_of(parts: Parts) -> int:
    return next((len(t) for _, t in leaves(parts.inputs, is_tensor) if t.dim()), 0)


def _copy(tensor: torch.Tensor, rows: int | None) -> torch.Tensor:
    return (tensor.detach() if rows is None else tensor.detach()[:rows]).to("cpu", copy=True)


def _is_plain(tree: Any) -> bool:
    """Beside tensors only values: objects of the user's are not held on to."""
    if is_tensor(tree) or isinstance(tree, PLAIN):
        return True
    if isinstance(tree, dict):
        return all(map(_is_plain, tree.values()))
    return isinstance(tree, list | tuple) and all(map(_is_plain, tree))


def _moved(parts: Parts, devices: list[torch.device]) -> Parts:
    waiting = iter(devices)
    given, wanted = map_arrays(parts.raw, lambda t: t.to(next(waiting, t.device)), is_tensor)
    return Parts(given, wanted, (given, wanted))
