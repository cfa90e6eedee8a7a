"""The model that the user's function calls, and its call done again: for a step that nobody watched."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.copying import deep_copy
from sleuth.adapters.torch.failures.source import Function
from sleuth.adapters.torch.tracing import call
from sleuth.adapters.torch.watching.rerun_nonfinite import MOST_BYTES
from sleuth.adapters.torch.watching.step_memory import detached

Again = Callable[[], tuple[nn.Module, Callable[[], Any]] | None]
# They make a new tensor of an old one and do nothing else.
HARMLESS = {"to", "float", "double", "long", "int", "cpu", "cuda", "view", "reshape", "flatten", "unsqueeze", "squeeze",
            "permute", "transpose", "detach", "clone", "contiguous", "requires_grad_", "half", "bfloat16"}  # fmt: skip
UNKNOWN = object()


def model_called(mine: list[Function]) -> nn.Module | None:
    """The one that is called in the innermost function that calls any; a loss is none."""
    for one in mine:
        found = [module for _, module in _calls(one)]
        if found:
            return found[-1] if len({id(m) for m in found}) == 1 else None
    return None


def called_again(mine: list[Function]) -> Again:
    """A copy of the model, and what calls it with what the user's line gave it, as far as that can be had without running
    anything of the user's."""

    def build() -> tuple[nn.Module, Callable[[], Any]] | None:
        for one in mine:
            for node, module in reversed(list(_calls(one))):
                given = _given(one, node)
                if node.lineno <= one.line and given is not None and _size(module) <= MOST_BYTES:
                    return _on_a_copy(module, *given)
        return None

    return build


def _on_a_copy(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[nn.Module, Callable[[], Any]] | None:  # fmt: skip
    try:
        twin = deep_copy(module)
    except Exception:  # a tensor with a graph that the model keeps cannot be copied
        return None
    return twin, lambda: call(twin, detached(args), detached(kwargs))


def _calls(mine: Function) -> Iterator[tuple[ast.Call, nn.Module]]:
    nodes = [n for n in mine.nodes if isinstance(n, ast.Call)]
    for node in sorted(nodes, key=lambda n: n.lineno):
        module = mine.lookup(node.func)
        if isinstance(module, nn.Module) and next(module.parameters(), None) is not None:
            yield node, module


def _given(mine: Function, node: ast.Call) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    args = tuple(_value(mine, a) for a in node.args)
    kwargs = {k.arg or "": _value(mine, k.value) for k in node.keywords}
    unknown = any(a is UNKNOWN for a in (*args, *kwargs.values())) or "" in kwargs
    return None if unknown or not (args or kwargs) else (args, kwargs)


def _value(mine: Function, node: ast.AST) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Call(func=ast.Attribute(value=owner, attr=verb), args=args, keywords=keywords) if verb in HARMLESS:
            tensor = _value(mine, owner)
            rest = [_value(mine, a) for a in args]
            named = {k.arg: _value(mine, k.value) for k in keywords if k.arg}
            if not isinstance(tensor, torch.Tensor) or any(v is UNKNOWN for v in (*rest, *named.values())):
                return UNKNOWN
            return getattr(tensor.detach(), verb)(*rest, **named)
        case ast.UnaryOp() | ast.Name() | ast.Attribute() | ast.Subscript():
            found = mine.lookup(node)
            return UNKNOWN if found is None else found
    return UNKNOWN


def _size(module: nn.Module) -> int:
    return sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()))
