"""What the classes of mlx.nn are, in the words that every adapter uses."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

ACTIVATIONS: dict[type, str] = {
    nn.ReLU: "relu",
    nn.ReLU6: "relu6",
    nn.ReLU2: "relu2",
    nn.LeakyReLU: "leaky_relu",
    nn.PReLU: "prelu",
    nn.ELU: "elu",
    nn.SELU: "selu",
    nn.CELU: "celu",
    nn.GELU: "gelu",
    nn.SiLU: "silu",
    nn.Mish: "mish",
    nn.Softplus: "softplus",
    nn.Softsign: "softsign",
    nn.Sigmoid: "sigmoid",
    nn.LogSigmoid: "logsigmoid",
    nn.Tanh: "tanh",
    nn.HardTanh: "hardtanh",
    nn.Hardswish: "hardswish",
    nn.HardShrink: "hardshrink",
    nn.Softshrink: "softshrink",
    nn.GLU: "glu",
    nn.Step: "threshold",
}
SOFTMAXES: dict[type, str] = {nn.Softmax: "softmax", nn.LogSoftmax: "log_softmax"}
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
FAMILIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((nn.Linear, nn.Bilinear, nn.QuantizedLinear), "linear"),
    ((*CONVOLUTIONS, *TRANSPOSED), "conv"),
    ((nn.RNN, nn.GRU, nn.LSTM), "recurrent"),
    ((nn.MultiHeadAttention,), "attention"),
    ((nn.Embedding, nn.QuantizedEmbedding), "embedding"),
    ((nn.BatchNorm,), "batchnorm"),
    ((nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm, nn.RMSNorm), "norm"),
    ((nn.Dropout, nn.Dropout2d, nn.Dropout3d), "dropout"),
    (tuple(SOFTMAXES), "softmax"),
    (POOLS, "pool"),
    (tuple(ACTIVATIONS), "activation"),
)
# Attribute of the module → our word for it.
SETTINGS = {"stride": "stride", "padding": "padding", "eps": "epsilon", "momentum": "momentum", "num_heads": "heads"}


def family_of(module: nn.Module) -> str:
    for kinds, family in FAMILIES:
        if isinstance(module, kinds):
            return family
    return "container" if module.children() and any(children(module)) else "other"


def children(module: nn.Module) -> list[nn.Module]:
    return [m for m in module.modules() if m is not module]


def activation_of(module: nn.Module) -> str:
    named = {**ACTIVATIONS, **SOFTMAXES}
    return next((word for kind, word in named.items() if isinstance(module, kind)), "")


def settings_of(module: nn.Module) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attribute, word in SETTINGS.items():
        value = getattr(module, attribute, None)
        if isinstance(value, int | float | bool | str | tuple):
            found[word] = value
    found |= _widths(module)
    if isinstance(module, nn.Dropout | nn.Dropout2d | nn.Dropout3d):
        found["p"] = round(1 - module._p_1, 12)
    if activation := ACTIVATIONS.get(type(module)):
        found["activation"] = activation
    if type(module) in SOFTMAXES:
        found["axis"] = -1
    return found


def _widths(module: nn.Module) -> dict[str, Any]:
    """In and out, from the shapes of the weights."""
    weight = module.get("weight")
    if isinstance(module, nn.RNN | nn.GRU | nn.LSTM):
        inner = getattr(module, "Wx", module.get("Wxh"))
        return {"in": inner.shape[-1], "out": module.hidden_size} if isinstance(inner, mx.array) else {}
    if isinstance(module, nn.BatchNorm):
        return {"in": module.num_features}
    if not isinstance(weight, mx.array):
        return {}
    known: dict[str, Any] = {"bias": isinstance(module.get("bias"), mx.array)}
    match module:
        case nn.Linear():
            return known | {"in": weight.shape[1], "out": weight.shape[0]}
        case nn.Embedding():
            return {"in": weight.shape[0], "out": weight.shape[1]}
        case _ if isinstance(module, CONVOLUTIONS):
            groups = getattr(module, "groups", 1)
            return known | {
                "in": weight.shape[-1] * groups,
                "out": weight.shape[0],
                "kernel": weight.shape[1:-1],
                "groups": groups,
            }
        case _ if isinstance(module, TRANSPOSED):
            return known | {"in": weight.shape[-1], "out": weight.shape[0], "kernel": weight.shape[1:-1], "transposed": True}
        case _ if isinstance(module, nn.LayerNorm | nn.RMSNorm | nn.GroupNorm | nn.InstanceNorm):
            return known | {"in": weight.shape[0]}
        case _:
            return known
