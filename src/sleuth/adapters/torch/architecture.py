"""Describing a torch model and its optimiser."""

import sys
from collections.abc import Iterator, ValuesView
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from sleuth.adapters.common.assignment import assignment
from sleuth.adapters.common.machine import machine
from sleuth.adapters.torch.source_lines import freezing_line, layer_line, weight_line
from sleuth.adapters.torch.watching import created_at
from sleuth.core.observation import Architecture, Layer, Parameter, Settings, Stray
from sleuth.core.subject import Subject

ACTIVATIONS = {
    nn.ReLU: "relu",
    nn.ReLU6: "relu6",
    nn.LeakyReLU: "leaky_relu",
    nn.PReLU: "prelu",
    nn.ELU: "elu",
    nn.SELU: "selu",
    nn.CELU: "celu",
    nn.GELU: "gelu",
    nn.SiLU: "silu",
    nn.Mish: "mish",
    nn.Softplus: "softplus",
    nn.Sigmoid: "sigmoid",
    nn.Hardsigmoid: "hardsigmoid",
    nn.LogSigmoid: "logsigmoid",
    nn.Tanh: "tanh",
    nn.Hardtanh: "hardtanh",
    nn.Hardswish: "hardswish",
    nn.Hardshrink: "hardshrink",
    nn.Softshrink: "softshrink",
    nn.Threshold: "threshold",
}
FAMILIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((nn.Linear, nn.Bilinear), "linear"),
    ((nn.modules.conv._ConvNd,), "conv"),
    ((nn.RNNBase, nn.RNNCellBase), "recurrent"),
    ((nn.MultiheadAttention,), "attention"),
    ((nn.Embedding, nn.EmbeddingBag), "embedding"),
    ((nn.modules.batchnorm._BatchNorm,), "batchnorm"),
    ((nn.LayerNorm, nn.GroupNorm, nn.LocalResponseNorm, nn.RMSNorm, nn.modules.instancenorm._InstanceNorm), "norm"),
    ((nn.modules.dropout._DropoutNd,), "dropout"),
    ((nn.Softmax, nn.LogSoftmax, nn.Softmax2d), "softmax"),
    ((nn.modules.pooling._MaxPoolNd, nn.modules.pooling._AvgPoolNd, nn.modules.pooling._AdaptiveAvgPoolNd,
      nn.modules.pooling._AdaptiveMaxPoolNd), "pool"),
    ((nn.Flatten, nn.Unflatten), "flatten"),
    ((nn.modules.loss._Loss,), "loss"),
    (tuple(ACTIVATIONS), "activation"),
)  # fmt: skip
# Attribute of the module → our word for it.
SETTINGS = {
    "in_features": "in",
    "out_features": "out",
    "in_channels": "in",
    "out_channels": "out",
    "num_features": "in",
    "num_embeddings": "in",
    "embedding_dim": "out",
    "kernel_size": "kernel",
    "stride": "stride",
    "padding": "padding",
    "padding_idx": "padding_index",
    "p": "p",
    "dim": "axis",
    "eps": "epsilon",
    "momentum": "momentum",
    "hidden_size": "out",
    "input_size": "in",
    "num_heads": "heads",
    "reduction": "reduction",
    "inplace": "inplace",
    "batch_first": "batch_first",
}
STRAY_DEPTH = 6


def family_of(module: nn.Module) -> str:
    for kinds, family in FAMILIES:
        if isinstance(module, kinds):
            return family
    return "container" if module._modules else "other"


def describe(subject: Subject) -> Architecture:
    model: nn.Module = subject.model
    held = _held_by(subject.optimizer)
    made = created_at.made(subject.optimizer)
    layers = tuple(_layer(model, path, module, made) for path, module in model.named_modules() if path)
    if not model._modules:
        layers = (_layer(model, "", model, made),)
    parameters = tuple(_parameters(model, held))
    frozen_at = None if all(p.trainable for p in parameters) else freezing_line(sys._getframe(1))
    unshaped = any(is_lazy(p) for p in model.parameters())
    return Architecture(layers, parameters, tuple(_strays(model, held or set())), frozen_at, unshaped)


def settings(subject: Subject) -> Settings:
    optimiser = subject.optimizer
    own = {id(p) for p in subject.model.parameters()}
    dtypes = [p.dtype for p in subject.model.parameters()]
    name = lr = None
    options: dict[str, Any] = {}
    foreign = 0
    if isinstance(optimiser, torch.optim.Optimizer):
        name = type(optimiser).__name__
        group = optimiser.param_groups[0] if optimiser.param_groups else {}
        lr = _number(group.get("lr"))
        options = {k: v for k, v in group.items() if isinstance(v, int | float | bool | tuple | str) and k != "lr"}
        own |= {id(p) for p in subject.loss.parameters()} if isinstance(subject.loss, nn.Module) else set()
        foreign = sum(id(p) not in own for g in optimiser.param_groups for p in g["params"])
    return Settings(
        framework="torch",
        loss=loss_name(subject),
        optimiser=name,
        lr=lr,
        optimiser_options=options,
        parameter_dtype=str(max(set(dtypes), key=dtypes.count)).removeprefix("torch.") if dtypes else None,
        default_dtype=str(torch.get_default_dtype()).removeprefix("torch."),
        foreign_parameters=foreign,
        versions={"torch": torch.__version__},
        machine={**machine(), "threads": str(torch.get_num_threads()), "device": _devices(subject.model)},
    )


def _devices(model: nn.Module) -> str:
    kinds = sorted({p.device.type for p in model.parameters()})
    names = {kind: torch.cuda.get_device_name() for kind in kinds if kind == "cuda"}
    return ", ".join(f"{kind} ({names[kind]})" if kind in names else kind for kind in kinds)


def loss_name(subject: Subject) -> str | None:
    thing = subject.loss or subject.step
    if thing is None:
        return None
    owner = getattr(thing, "__self__", None)  # of `Mine.apply` the class says more
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        return owner.__name__
    return type(thing).__name__ if isinstance(thing, nn.Module) else getattr(thing, "__name__", type(thing).__name__)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _held_by(optimiser: Any) -> set[int] | None:
    if not isinstance(optimiser, torch.optim.Optimizer):
        return None
    return {id(p) for group in optimiser.param_groups for p in group["params"]}


def _layer(model: nn.Module, path: str, module: nn.Module, optimiser: created_at.Made | None) -> Layer:
    values: dict[str, Any] = {}
    for attribute, word in SETTINGS.items():
        value = getattr(module, attribute, None)
        if isinstance(value, int | float | bool | str | tuple) and word not in values:
            values[word] = value
    if hasattr(module, "bias"):
        bias: Any = module.bias  # a tensor, None, or for recurrent layers a flag
        values["bias"] = isinstance(bias, torch.Tensor) or bias is True
    if (activation := ACTIVATIONS.get(type(module))) is not None:
        values["activation"] = activation
    made = created_at.made(module)
    late = made is not None and optimiser is not None and made.order > optimiser.order
    return Layer(path, type(module).__name__, family_of(module), values, layer_line(model, path), late)


def _parameters(model: nn.Module, held: set[int] | None) -> Iterator[Parameter]:
    first: dict[int, str] = {}
    for prefix, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            path = f"{prefix}.{name}" if prefix else name
            uninitialised = isinstance(parameter, nn.parameter.UninitializedParameter)
            yield Parameter(
                path=path,
                shape=() if uninitialised else tuple(parameter.shape),
                dtype=str(parameter.dtype).removeprefix("torch."),
                device=str(parameter.device),
                trainable=parameter.requires_grad,
                optimised=None if held is None else id(parameter) in held,
                layer=prefix,
                family=family_of(module),
                tied_to=first.get(id(parameter)),
                location=weight_line(model, path, parameter),
            )
            first.setdefault(id(parameter), path)


def _strays(model: nn.Module, held: set[int]) -> Iterator[Stray]:
    known = {id(p) for p in model.parameters()} | held
    visited = {id(module) for module in model.modules()}
    for prefix, module in model.named_modules():
        for attribute, value in vars(module).items():
            if attribute in ("_modules", "_parameters", "_buffers") or attribute.endswith("_hooks"):
                continue
            count = sum(p.numel() for p in _trainable(value, STRAY_DEPTH, visited) if id(p) not in known)
            if count:
                path = f"{prefix}.{attribute}" if prefix else attribute
                yield Stray(path, _holder(value), count, assignment(type(module), attribute))


def _trainable(thing: Any, depth: int, visited: set[int]) -> Iterator[torch.Tensor]:
    """Trainable parameters inside a value that torch does not look into; each is found once."""
    if isinstance(thing, str | bytes | int | float | type | torch.optim.Optimizer) or id(thing) in visited:
        return
    visited.add(id(thing))
    if isinstance(thing, torch.Tensor):
        if thing.requires_grad and thing.is_leaf:
            yield thing
    elif isinstance(thing, nn.Module):
        yield from (p for p in thing.parameters() if p.requires_grad)
    elif depth > 0:
        for child in _children(thing)[:256]:
            yield from _trainable(child, depth - 1, visited)


def _children(thing: Any) -> list[Any]:
    match thing:
        case dict():
            return list(thing.values())
        case list() | tuple() | set() | frozenset() | ValuesView():
            return list(thing)
        case partial():
            return [thing.func, *thing.args, *thing.keywords.values()]
        case MethodType():
            return [thing.__self__]
        case FunctionType():
            return [cell.cell_contents for cell in thing.__closure__ or () if not _is_empty(cell)]
    slots = [getattr(thing, name, None) for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*getattr(thing, "__dict__", {}).values(), *slots]


def _is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _holder(value: Any) -> str:
    for kind in (list, dict, tuple, set):
        if isinstance(value, kind):
            return kind.__name__
    if isinstance(value, FunctionType | MethodType | partial):
        return "function"
    return "tensor" if isinstance(value, torch.Tensor) else "object"
