"""Every operation of a step that is done again: what it was given, before it could write over it, and what it made."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.pass_listener import Listener, is_tensor, name_of
from sleuth.adapters.torch.place import is_users
from sleuth.adapters.torch.tracing import SILENT, TooLong
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import SLEUTH
from sleuth.core.runtime.tree import leaves

# What Python's operators are called, and what torch calls in place.
WORDS = {
    "__rdiv__": "div", "__rtruediv__": "div", "__truediv__": "div", "true_divide": "div", "divide": "div", "__rpow__": "pow",
    "__pow__": "pow", "__mul__": "mul", "__rmul__": "mul", "multiply": "mul", "__rsub__": "sub", "subtract": "sub",
    "arccos": "acos", "arcsin": "asin", "linalg_norm": "norm", "linalg_vector_norm": "norm", "__matmul__": "matmul",
    "_softmax": "softmax",
}  # fmt: skip


@dataclass(frozen=True)
class State:
    """A tensor at one moment. The range is that of what is finite."""

    key: int
    storage: int
    shape: tuple[int, ...]
    dtype: str
    nans: int = 0
    infs: int = 0
    positive_infs: int = 0
    zeros: int = 0
    low: float = 0.0
    high: float = 0.0

    @property
    def bad(self) -> bool:
        return bool(self.nans or self.infs)


@dataclass
class Deed:
    """One call into torch."""

    number: int
    name: str
    layer: str
    location: Location | None
    given: list[State]
    made: list[State]
    constants: tuple[float, ...]  # plain numbers among its arguments
    first_node: int
    last_node: int  # of autograd; past the end
    outside: bool  # of the model
    tensors: list[torch.Tensor] = field(default_factory=list)  # what it made
    before: list[torch.Tensor] = field(default_factory=list)  # what it was given


class Witness(Listener):
    def __init__(self, model: nn.Module, ends: float) -> None:
        super().__init__(model)
        self.deeds: list[Deed] = []
        self.line: Location | None = None  # where what comes now was written, if that is known already
        self.fallback: Location | None = None  # the user's line that calls the model
        self._ends = ends

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.monotonic() > self._ends:
            raise TooLong
        kwargs = kwargs or {}
        name = name_of(func)
        if name in SILENT:
            return func(*args, **kwargs)
        tensors = [t for _, t in leaves([list(args), dict(kwargs)], is_tensor)]
        given = [look(t) for t in tensors]
        first = torch._C._autograd._get_sequence_nr()
        output = func(*args, **kwargs)
        last = torch._C._autograd._get_sequence_nr()
        made = [t for _, t in leaves(output, is_tensor)]
        if name == "__setitem__":
            made = tensors[:1]
        if made:
            self.alive += tensors + made
            constants = tuple(
                float(a) for a in (*args, *kwargs.values()) if isinstance(a, int | float) and not isinstance(a, bool)
            )
            self.deeds.append(
                Deed(
                    len(self.deeds), _word(name), self.layer, self.line or _line() or self.fallback, given,
                    [look(t) for t in made], constants, first, last, self.outside, made, tensors,
                )
            )  # fmt: skip
        return output

    @contextmanager
    def written_at(self, line: Location | None) -> Iterator[None]:
        self.line = line
        try:
            yield
        finally:
            self.line = None


def look(tensor: torch.Tensor) -> State:
    key, shape, dtype = id(tensor), tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    strided = tensor.layout is torch.strided and not tensor.is_meta
    storage = tensor.untyped_storage().data_ptr() if strided else 0
    if not strided or not tensor.is_floating_point() or not tensor.numel():
        low, high = _range(tensor) if strided and tensor.numel() and not tensor.is_complex() else (0.0, 0.0)
        return State(key, storage, shape, dtype, low=low, high=high)
    with torch.no_grad():
        values = tensor.detach()
        zeros = int((values == 0).sum())
        sound = torch.isfinite(values)
        if bool(sound.all()):
            return State(key, storage, shape, dtype, 0, 0, 0, zeros, *_range(values))
        nans, infs, above = (int(f(values).sum()) for f in (torch.isnan, torch.isinf, torch.isposinf))
        return State(key, storage, shape, dtype, nans, infs, above, zeros, *_range(values[sound]))


def _range(values: torch.Tensor) -> tuple[float, float]:
    if not values.numel():
        return 0.0, 0.0
    low, high = torch.aminmax(values.detach().reshape(-1))
    return float(low), float(high)


def _word(name: str) -> str:
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    return WORDS.get(plain, plain)


def _line() -> Location | None:
    """The innermost user's line below our own that runs the user's model."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith(SLEUTH):
        if is_users(frame.f_code.co_filename):
            return locate(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None
