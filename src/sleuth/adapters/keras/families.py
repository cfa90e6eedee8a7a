"""Which common word a Keras layer goes by, and what it is set to."""

from typing import Any

import keras
from keras import layers

from sleuth.adapters.keras.model_parts import inner

ACTIVATION_LAYERS = {
    layers.ReLU: "relu",
    layers.LeakyReLU: "leaky_relu",
    layers.PReLU: "prelu",
    layers.ELU: "elu",
}
# Names of functions in keras.activations → the word that every framework shares.
ACTIVATIONS = {
    "relu": "relu", "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu", "selu": "selu", "celu": "celu", "gelu": "gelu",
    "silu": "silu", "swish": "silu", "mish": "mish", "softplus": "softplus", "sigmoid": "sigmoid", "hard_sigmoid": "hardsigmoid",
    "log_sigmoid": "logsigmoid", "tanh": "tanh", "hard_tanh": "hardtanh", "hard_silu": "hardswish", "hard_swish": "hardswish",
}  # fmt: skip
SOFTMAXES = ("softmax", "log_softmax")
RESHAPING = (layers.Flatten, layers.Reshape, layers.Permute)


def _base(*names: str) -> tuple[type, ...]:
    """Classes that a release of Keras has."""
    return tuple(found for name in names if isinstance(found := getattr(layers, name, None), type))


POOLS = _base(*(f"{kind}Pooling{d}D" for kind in ("Max", "Average", "GlobalMax", "GlobalAverage", "AdaptiveMax",
                                                    "AdaptiveAverage") for d in (1, 2, 3)))  # fmt: skip
FAMILIES: tuple[tuple[tuple[type, ...], str], ...] = (
    (_base("Dense", "EinsumDense"), "linear"),
    (_base(*(f"{kind}{d}D" for kind in ("Conv", "DepthwiseConv", "SeparableConv") for d in (1, 2, 3)),
           *(f"Conv{d}DTranspose" for d in (1, 2, 3))), "conv"),
    (_base("RNN", "LSTM", "GRU", "SimpleRNN", "Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "LSTMCell", "GRUCell",
           "SimpleRNNCell"), "recurrent"),
    (_base("MultiHeadAttention", "GroupQueryAttention", "Attention", "AdditiveAttention"), "attention"),
    (_base("Embedding"), "embedding"),
    (_base("BatchNormalization"), "batchnorm"),
    (_base("LayerNormalization", "GroupNormalization", "RMSNormalization", "UnitNormalization", "SpectralNormalization"), "norm"),
    (_base("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout", "GaussianDropout"), "dropout"),
    (_base("Softmax"), "softmax"),
    (POOLS, "pool"),
    (RESHAPING, "flatten"),
    (tuple(ACTIVATION_LAYERS), "activation"),
)  # fmt: skip
# Attribute of the layer → our word for it.
SETTINGS = {
    "units": "out", "filters": "out", "input_dim": "in", "output_dim": "out", "kernel_size": "kernel", "strides": "stride",
    "padding": "padding", "rate": "p", "axis": "axis", "epsilon": "epsilon", "momentum": "momentum", "num_heads": "heads",
    "groups": "groups", "dilation_rate": "dilation", "data_format": "data_format",
}  # fmt: skip


def family_of(layer: Any) -> str:
    for kinds, family in FAMILIES:
        if isinstance(layer, kinds):
            return family
    if isinstance(layer, layers.Activation):
        return "softmax" if fused(layer) in SOFTMAXES else "activation" if fused(layer) else "other"
    return "container" if inner(layer) else "other"


def fused(layer: Any) -> str:
    """The activation that a layer applies at its end: our word for it, or "" where there is none that is known."""
    for kind, word in ACTIVATION_LAYERS.items():
        if isinstance(layer, kind):
            return word
    given = getattr(layer, "activation", None)
    name = getattr(given, "__name__", type(given).__name__).lower()
    return name if name in SOFTMAXES else ACTIVATIONS.get(name, "")


def settings_of(layer: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attribute, word in SETTINGS.items():
        value = getattr(layer, attribute, None)
        if isinstance(value, int | float | bool | str | tuple | list) and word not in found:
            found[word] = tuple(value) if isinstance(value, list) else value
    if hasattr(layer, "use_bias"):
        found["bias"] = bool(layer.use_bias)
    if word := fused(layer):
        found["activation"] = word
    kernel = getattr(layer, "kernel", None) if layer.built else None
    if kernel is not None and family_of(layer) in ("linear", "conv") and len(kernel.shape) >= 2:
        found.setdefault("in", int(kernel.shape[-2]) * int(getattr(layer, "groups", 1) or 1))
    if isinstance(layer, layers.BatchNormalization) and layer.built:
        moving = layer.moving_mean
        found["in"] = int(moving.shape[0])
    return found


def version() -> str:
    return str(keras.__version__)
