"""What stood where when an exception came: read from the frames of its traceback."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.listening import Listener
from sleuth.adapters.torch.place import TORCH, location_of
from sleuth.core.location import Location


@dataclass(frozen=True)
class Scene:
    path: str | None = None  # the innermost layer of the model whose forward was running
    module: nn.Module | None = None
    given: tuple[Any, ...] = ()  # what that forward was given
    input: Any = None  # of the loss function that was running
    target: Any = None
    location: Location | None = None
    operands: tuple[torch.Tensor, ...] = ()  # of the op that raised, where a listener stood by

    @property
    def tensor(self) -> torch.Tensor | None:
        """The first tensor that the layer was given."""
        return next((g for g in self.given if isinstance(g, torch.Tensor)), None)

    def name(self) -> str:
        """The layer as the user wrote it, in short: Linear(512→10)."""
        kind = type(self.module).__name__ if self.module is not None else "the operation"
        ends = _ends(self.module)
        return f"{kind}({'→'.join(map(str, ends))})" if ends else kind


@dataclass(frozen=True)
class Explained:
    kind: str
    expected: str | None = None
    got: str | None = None
    advice: str | None = None


Explainer = Callable[[re.Match[str], Scene], Explained | None]
Table = tuple[tuple[str, Explainer], ...]

SIZES = (("in_features", "out_features"), ("in_channels", "out_channels"), ("num_embeddings", "embedding_dim"),
         ("input_size", "hidden_size"), ("num_features",), ("embed_dim",), ("normalized_shape",))  # fmt: skip


def _ends(module: nn.Module | None) -> tuple[Any, ...]:
    for names in SIZES:
        if all(hasattr(module, n) for n in names):
            return tuple(getattr(module, n) for n in names)
    return ()


def sides(size: Any) -> str:
    """A shape as people write it: (32, 784)."""
    return str(tuple(size))


def read_scene(trace: TracebackType | None, model: nn.Module) -> Scene:
    names = {id(module): path for path, module in model.named_modules()}
    scene: dict[str, Any] = {"location": location_of(trace)}
    for frame in _frames(trace):
        values = frame.f_locals
        owner = values.get("self")
        if isinstance(owner, Listener) and "func" in values:
            scene |= _call(values["func"], values["args"], values["kwargs"] or {})
        elif isinstance(owner, nn.Module) and id(owner) in names and frame.f_code.co_name == "forward":
            scene |= {"path": names[id(owner)], "module": owner, "given": tuple(_arguments(frame))}
        elif frame.f_code.co_filename.startswith(TORCH) and "input" in values and "target" in values:
            scene |= {"input": values["input"], "target": values["target"]}
    return Scene(**scene)


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _arguments(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    for name in names:
        yield frame.f_locals.get(name)
    if code.co_flags & inspect.CO_VARARGS:
        yield from frame.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())


def _call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    tensors = tuple(a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor))
    found: dict[str, Any] = {"operands": tensors}
    try:
        bound = inspect.signature(func).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return found
    if "input" in bound and "target" in bound:
        found |= {"input": bound["input"], "target": bound["target"]}
    return found


@dataclass(frozen=True)
class Patterns:
    """A table, tried from the top: the first function that has something to say wins."""

    rows: Table = field(default_factory=tuple)

    def explain(self, message: str, scene: Scene) -> Explained | None:
        for pattern, read in self.rows:
            match = re.search(pattern, message)
            if match is not None and (explained := read(match, scene)) is not None:
                return explained
        return None
