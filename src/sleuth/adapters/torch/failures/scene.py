"""What stood where when an exception came: read from the frames of its traceback."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.pass_listener import Listener, Op, name_of
from sleuth.adapters.torch.place import TORCH, is_users, location_of
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
    operation: str | None = None
    model: nn.Module | None = None
    rows: int | None = None  # samples in the batch that the model was given
    error: Exception | None = None
    values: Mapping[str, Any] = field(default_factory=dict)  # the local names of the innermost line of the user's
    ops: tuple[Op, ...] = ()  # that ran before, where a listener stood by
    building: str | None = None  # the loss class that was being built when it raised

    @property
    def tensor(self) -> torch.Tensor | None:
        """The first tensor that the layer was given."""
        return next((g for g in self.given if isinstance(g, torch.Tensor)), None)

    def name(self) -> str:
        """The layer as the user wrote it, in short: Linear(512→10)."""
        kind = type(self.module).__name__ if self.module is not None else "the operation"
        sizes = ends(self.module)
        return f"{kind}({'→'.join(map(str, sizes))})" if sizes else kind

    def name_of(self, tensor: torch.Tensor) -> str | None:
        """How the user calls a tensor: the path of a parameter or buffer, else the local name."""
        named = (*self.model.named_parameters(), *self.model.named_buffers()) if self.model is not None else ()
        own = next((path for path, p in named if p is tensor), None)
        return own or next((name for name, value in self.values.items() if value is tensor), None)


@dataclass(frozen=True)
class Explained:
    kind: str
    expected: str | None = None
    got: str | None = None
    advice: str | None = None
    location: Location | None = None  # where another line than the one that raised is to blame


Explainer = Callable[[re.Match[str], Scene], Explained | None]
Table = tuple[tuple[str, Explainer], ...]

SIZES = (("in_features", "out_features"), ("in_channels", "out_channels"), ("num_embeddings", "embedding_dim"),
         ("input_size", "hidden_size"), ("num_features",), ("embed_dim",), ("normalized_shape",))  # fmt: skip


def ends(module: nn.Module | None) -> tuple[Any, ...]:
    for names in SIZES:
        if all(hasattr(module, n) for n in names):
            return tuple(getattr(module, n) for n in names)
    return ()


def sides(size: Any) -> str:
    """A shape as people write it: (32, 784)."""
    return str(tuple(size))


def count(number: int, word: str) -> str:
    """1 axis, 2 axes."""
    plural = word[:-2] + "es" if word.endswith("is") else word + "s"
    return f"{number} {word if number == 1 else plural}"


def read_scene(error: Exception, model: nn.Module, ops: tuple[Op, ...] = ()) -> Scene:
    names = {id(module): path for path, module in model.named_modules()}
    scene: dict[str, Any] = {"location": location_of(error.__traceback__), "model": model, "error": error, "ops": ops}
    for frame in _frames(error.__traceback__):
        values, code = frame.f_locals, frame.f_code
        owner = values.get("self")
        if isinstance(owner, Listener) and "func" in values:
            scene |= _call(values["func"], values["args"], values["kwargs"] or {})
        elif isinstance(owner, nn.Module) and id(owner) in names and code.co_name in ("forward", "_call_impl"):
            scene |= _forward(frame, owner, names[id(owner)], "path" not in scene)
        elif isinstance(owner, nn.modules.loss._Loss) and code.co_name == "__init__":
            scene["building"] = type(owner).__name__
        elif code.co_filename.startswith(TORCH) and "input" in values and "target" in values:
            scene |= {"input": values["input"], "target": values["target"]}
        if is_users(code.co_filename):
            scene["values"] = dict(values)
    return Scene(**scene)


def _forward(frame: FrameType, owner: nn.Module, path: str, outermost: bool) -> dict[str, Any]:
    """A call with the wrong arguments never reaches forward: then torch's own frame around it is all there is."""
    reached = frame.f_code.co_name == "forward"
    given = tuple(_arguments(frame)) if reached else tuple(frame.f_locals.get("args", ()))
    found: dict[str, Any] = {"path": path, "module": owner, "given": given}
    first = next((g for g in given if isinstance(g, torch.Tensor) and g.dim()), None)
    if outermost and first is not None:
        found["rows"] = first.shape[0]
    return found


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
    tensors += tuple(t for a in args if isinstance(a, list | tuple) for t in a if isinstance(t, torch.Tensor))
    found: dict[str, Any] = {"operands": tensors, "operation": name_of(func)}
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
