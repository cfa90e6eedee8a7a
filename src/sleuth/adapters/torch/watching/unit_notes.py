"""What single units of activation layers put out, on looks that go deep.

A few values of each layer are copied inside the training; they are counted off its thread. Activations that are written as
functions are not heard here.
"""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn

from sleuth.adapters.common.activity import units_of
from sleuth.adapters.torch.architecture import ACTIVATIONS, family_of
from sleuth.core.observation import Absent, Observation, Units

# Layers, evenly spread over the depth; each copy costs some microseconds.
MOST_LAYERS = 16
# A loop over time calls one layer again and again: so many calls tell that it is one.
MOST_CALLS = 6
# Of a layer, evenly spaced. Sixty-four samples of each are looked at together.
MOST_UNITS = 256
MOST_VALUES = 1 << 14
# Spreads the order of layers from look to look: when a history drops every second entry it must not always hit the same ones.
SCRAMBLE = 0x9E3779B1

UNHEARD = "the model has no activation layers; those written as functions, such as F.relu, are not heard while it trains"

Copy = tuple[str, str, torch.Tensor, int]  # path, activation, values, axis of the units


class UnitNotes:
    def __init__(self, model: nn.Module) -> None:
        leaves = [(path, module) for path, module in model.named_modules() if path and not module._modules]
        acting = [module for _, module in leaves if type(module) in ACTIVATIONS]
        every = -(-len(acting) // MOST_LAYERS) or 1
        self._activations = {id(module): ACTIVATIONS[type(module)] for module in acting[::every]}
        self._weighty = {id(m): family for _, m in leaves if (family := family_of(m)) in ("linear", "conv")}
        self._after_conv = False
        self._told = False  # that there are none
        self._copies: dict[str, list[Copy]] = {}

    def note(self, module: nn.Module, path: str, output: torch.Tensor) -> None:
        family = self._weighty.get(id(module))
        if family is not None:
            self._after_conv = family == "conv"
        activation = self._activations.get(id(module))
        if activation is None or output.dim() < 2 or output.is_meta or torch._C._functorch.is_functorch_wrapped_tensor(output):
            return
        calls = self._copies.setdefault(path, [])
        if len(calls) < MOST_CALLS:
            axis = 1 if output.dim() >= 4 or (output.dim() == 3 and self._after_conv) else output.dim() - 1
            with torch.no_grad():
                calls.append((path, activation, output.detach()[_even(output.shape, axis)].clone(), axis))

    def take(self, step: int) -> Callable[[], Iterable[Observation]] | None:
        copies, self._copies = self._copies, {}
        if not self._activations and not self._told:
            self._told = True
            return lambda: [Absent(Units, UNHEARD)]
        if not copies:
            return None
        paths = list(copies)
        first = (step * SCRAMBLE >> 8) % len(paths)
        ordered = [copy for path in paths[first:] + paths[:first] for copy in copies[path]]
        return lambda: _units(step, ordered)

    def drop(self) -> None:
        self._copies = {}


def _even(shape: torch.Size, axis: int) -> tuple[slice, ...]:
    """Evenly spaced units, then samples, then places within them, until there are few enough values."""
    strides = [1] * len(shape)
    strides[axis] = -(-shape[axis] // MOST_UNITS) or 1
    room = MOST_VALUES // max(-(-shape[axis] // strides[axis]), 1)
    for dim in (0, *(d for d in range(1, len(shape)) if d != axis)):
        strides[dim] = -(-shape[dim] // max(room, 1)) or 1
        room //= max(-(-shape[dim] // strides[dim]), 1)
    return tuple(slice(None, None, stride) for stride in strides)


def _units(step: int, copies: list[Copy]) -> Iterator[Observation]:
    for path, activation, copy, axis in copies:
        values = copy.float().cpu().numpy()
        if not values.size:
            continue
        yield units_of(step, path, activation, values, axis)
