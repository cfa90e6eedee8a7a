"""A copy of a model in which nothing is compiled: experiments call it in many ways, and each would have to be compiled anew."""

import copy
from collections.abc import Iterator
from typing import Any

from torch import nn

from sleuth.adapters.torch.copying import deep_copy

INNER = "_orig_mod"  # as torch.compile calls what it wraps


def plain_name(path: str) -> str:
    """That a parameter or module has in the copy."""
    return ".".join(part for part in path.split(".") if part != INNER)


def is_compiled(model: nn.Module) -> bool:
    """Itself or a part of it, by `torch.compile(model)` or `model.compile()`."""
    return any(_inner(m) is not None or m._compiled_call_impl is not None for m in model.modules())


def copied(model: nn.Module) -> nn.Module:
    """Raises where the model holds what cannot be copied."""
    # What is compiled in place is left behind by torch's own way to copy a module.
    memo: dict[int, Any] = {}
    for wrapper in _wrappers(model):
        inner: Any = wrapper
        while (next_one := _inner(inner)) is not None:
            inner = next_one
        memo[id(wrapper)] = copy.deepcopy(inner, memo)
    return deep_copy(model, memo)


def _wrappers(model: nn.Module) -> Iterator[nn.Module]:
    """The inner ones come first, so that they are known when those around them are copied."""
    yield from (m for m in reversed(list(model.modules())) if _inner(m) is not None)


def _inner(module: nn.Module) -> nn.Module | None:
    inner = module.__dict__.get("_modules", {}).get(INNER)
    return inner if type(module).__module__.startswith("torch._dynamo") else None
