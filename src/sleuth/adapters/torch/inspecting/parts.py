"""The tree of a model, with what each part owns."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from sleuth.adapters.torch.architecture import SETTINGS, family_of
from sleuth.core.contract.inspection import Part

PLAIN = (int, float, bool, str, tuple)


def parts(model: nn.Module) -> tuple[Part, ...]:
    return tuple(_walk(model, "", {}, {}))


def _walk(module: nn.Module, path: str, modules: dict[int, str], tensors: dict[int, str]) -> Iterator[Part]:
    common: dict[str, Any] = {
        "path": path,
        "kind": type(module).__name__,
        "family": family_of(module),
        "settings": {word: v for name, word in SETTINGS.items() if isinstance(v := getattr(module, name, None), PLAIN)},
    }
    own = {name: p for name, p in module._parameters.items() if p is not None}
    lazy = any(nn.parameter.is_lazy(p) for p in own.values())
    shapes = {name: () if nn.parameter.is_lazy(p) else tuple(p.shape) for name, p in own.items()}
    if id(module) in modules:
        yield Part(**common, parameters=shapes, same_as=modules[id(module)], lazy=lazy)
        return
    modules[id(module)] = path
    tied = {name: tensors[id(p)] for name, p in own.items() if id(p) in tensors}
    new = {name: p for name, p in own.items() if name not in tied and not nn.parameter.is_lazy(p)}
    # Two names for one tensor inside a module count once as well.
    distinct = {id(p): p for p in new.values()}.values()
    tensors.update({id(p): f"{path}.{name}" if path else name for name, p in reversed(new.items())})
    count, trainable = sum(p.numel() for p in distinct), sum(p.numel() for p in distinct if p.requires_grad)
    yield Part(**common, parameters=shapes, count=count, trainable=trainable, tied=tied, lazy=lazy)
    for name, child in module._modules.items():
        if child is not None:
            yield from _walk(child, f"{path}.{name}" if path else name, modules, tensors)
