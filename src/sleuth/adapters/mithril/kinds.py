"""Mithril's words for layers and losses, and the common ones."""

from collections.abc import Mapping
from typing import Any

ACTIVATIONS = {
    "Relu": "relu",
    "LeakyRelu": "leaky_relu",
    "Gelu": "gelu",
    "Sigmoid": "sigmoid",
    "Softplus": "softplus",
    "Tanh": "tanh",
    "SiLU": "silu",
}
FAMILIES = {
    **dict.fromkeys(ACTIVATIONS, "activation"),
    **dict.fromkeys(("Linear",), "linear"),
    **dict.fromkeys(("Convolution1D", "Convolution2D"), "conv"),
    **dict.fromkeys(("RNNCell", "LSTMCell", "LSTMCellBody"), "recurrent"),
    **dict.fromkeys(("ScaledDotProduct",), "attention"),
    **dict.fromkeys(("Embedding",), "embedding"),
    **dict.fromkeys(("BatchNorm2D",), "batchnorm"),
    **dict.fromkeys(("LayerNorm", "GroupNorm"), "norm"),
    **dict.fromkeys(("Softmax",), "softmax"),
    **dict.fromkeys(("MaxPool1D", "MaxPool2D", "AvgPool2D"), "pool"),
    **dict.fromkeys(("Flatten", "Reshape"), "flatten"),
    **dict.fromkeys(
        (
            "CrossEntropy", "BinaryCrossEntropy", "SquaredError", "AbsoluteError", "HingeLoss", "QuadHingeLoss",
            "QuantileLoss", "KLDivergence",
        ),
        "loss",
    ),
}  # fmt: skip
# The function that a loss comes to → the common word for what it takes. `cross_entropy` takes probabilities: no common word.
LOSSES = {
    "cross_entropy_with_logits": "cross-entropy",
    "cross_entropy_with_log_probs": "nll",
    "cross_entropy": "other",
    "binary_cross_entropy": "bce",
    "binary_cross_entropy_with_logits": "bce-logits",
    "squared_error": "mse",
    "absolute_error": "l1",
    "hinge_loss": "hinge",
    "quad_hinge_loss": "other",
    "quantile_loss": "other",
    "kl_divergence": "kl",
}
REDUCTIONS = {"reduce_mean": "mean", "reduce_sum": "sum"}
# Functions through which no gradient comes back.
CUTS = ("stop_gradient", "reduce_argmax", "reduce_argmin", "sign", "floor_operator", "greater", "less", "equal")


def known_name(kind: type) -> str | None:
    """The class of the library that this one is or derives from, if it is a layer or a loss."""
    return next((base.__name__ for base in kind.__mro__ if base.__name__ in FAMILIES), None)


def settings_of(family: str, kind: str, shapes: Mapping[str, tuple[int, ...]], constants: Mapping[str, Any]) -> dict[str, Any]:
    """`shapes`: of the layer's parameters by the names of the arguments that they are given as; `constants` likewise."""
    found: dict[str, Any] = {}
    weight = shapes.get("weight")
    if family in ("linear", "conv") and weight is not None and len(weight) >= 2:
        found |= {"in": weight[1], "out": weight[0], "bias": "bias" in shapes}
        if family == "conv":
            found["kernel"] = weight[2:]
    elif family == "embedding" and weight is not None:
        found |= {"in": weight[0], "out": weight[1]}
    elif family in ("norm", "batchnorm") and weight is not None:
        found["in"] = weight[-1]
    elif family == "activation":
        found["activation"] = ACTIVATIONS[kind]
    if family == "softmax" and isinstance(constants.get("axis"), int):
        found["axis"] = constants["axis"]
    return found
