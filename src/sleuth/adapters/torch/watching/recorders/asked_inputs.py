"""What the model is asked without a graph and outside of training: validation, by its sources."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from sleuth.adapters.torch.loss_calls import bind_arguments
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.batch_sources import COPIES, Source, Sources
from sleuth.adapters.torch.watching.reservoir import HostReservoir, inputs_of, parts_of, rows_of, with_target
from sleuth.adapters.torch.watching.sample_indices import tensors_of
from sleuth.core.contract.kept import Group, Passed
from sleuth.core.subject import Parts

# Sources that are told apart.
MOST_GROUPS = 4
MOST_BYTES = 16 << 20

Apart = Callable[[Any], tuple[Any, Any] | None]


class Asking:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._passes: dict[Any, Pass] = {}
        self.trained_on: set[Any] = set()
        self._latest: tuple[Pass, int, int] | None = None  # whose place may still get its target, and of how many

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], step: int) -> None:
        self._latest = None
        given = [*tensors_of(args), *tensors_of(kwargs)]
        if not given or not given[0].dim():
            return
        source = self._sources.of(given, step)
        if source.key not in self._passes and source is not COPIES and len(self._passes) >= MOST_GROUPS:
            return
        found = self._passes.setdefault(source.key, Pass(source))
        found.count(step, len(given[0]))
        place = found.reservoir.wants()
        if place is None:
            return
        inputs, target = inputs_of(args, kwargs), self._sources.beside(given)
        parts = parts_of(inputs, target, first=place == 0)
        if parts is not None and found.reservoir.keep(place, Passed(step, parts)):
            found.reservoir.note_devices((inputs, target))
            self._latest = found, place, len(given[0])

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self._latest is None:
            return
        (found, place, size), self._latest = self._latest, None
        target = bind_arguments(name, args, kwargs).get("target")
        if is_tensor(target) and target.layout is torch.strided and target.dim() and len(target) == size:
            passed = found.reservoir.items[place]
            found.reservoir.keep(place, replace(passed, parts=with_target(passed.parts, target, rows_of(passed.parts))))

    def groups(self, apart: Apart | None = None) -> list[Group]:
        """`apart`: where the model is given its targets too, the arguments of a call -> inputs and target."""
        found = [(key, p, _taken_apart(p.reservoir.taken(), apart)) for key, p in self._passes.items() if p.reservoir.items]
        return [Group(b, p.samples, p.source.told and key not in self.trained_on) for key, p, b in found if b]


def _taken_apart(batches: list[Passed], apart: Apart | None) -> list[Passed]:
    if apart is None:
        return batches
    sides = [(passed, apart(passed.parts.inputs)) for passed in batches]
    return [replace(passed, parts=Parts(*side, side)) for passed, side in sides if side is not None]


class Pass:
    """From one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.reservoir = HostReservoir(MOST_BYTES)
        self.samples = 0
        self._counted = 0
        self._step = -1

    def count(self, step: int, samples: int) -> None:
        """Samples between two steps of the training are those of one pass."""
        self._counted = self._counted + samples if step == self._step else samples
        self._step = step
        self.samples = max(self.samples, self._counted)
