"""The common words for what JAX, Flax, Equinox and optax call by their own."""

ACTIVATIONS = (
    "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "sigmoid", "hardsigmoid", "tanh",
    "hardtanh", "hardswish", "logsigmoid", "prelu", "glu",
)  # fmt: skip
SOFTMAXES = ("softmax", "log_softmax")
# optax function → family of losses.
LOSSES = {
    "softmax_cross_entropy_with_integer_labels": "cross-entropy",
    "softmax_cross_entropy": "cross-entropy",
    "safe_softmax_cross_entropy": "cross-entropy",
    "sigmoid_binary_cross_entropy": "bce-logits",
    "squared_error": "mse",
    "l2_loss": "mse",
    "huber_loss": "huber",
    "hinge_loss": "hinge",
    "kl_divergence": "kl",
    "kl_divergence_with_log_targets": "kl",
    "ctc_loss": "ctc",
}
# Function, of a library or by hand → what it is to the checks.
FUNCTIONS = {
    **{name: name for name in (*ACTIVATIONS, *SOFTMAXES)},
    **{name: name for name in LOSSES},
    "swish": "silu",
    "hard_sigmoid": "hardsigmoid",
    "hard_tanh": "hardtanh",
    "hard_silu": "hardswish",
    "hard_swish": "hardswish",
    "log_sigmoid": "logsigmoid",
    "standardize": "standardize",
}
# Primitive → activation.
PRIMITIVES = {"tanh": "tanh", "logistic": "sigmoid"}
# Class of a layer → family.
FAMILIES = {
    **dict.fromkeys(("Linear",), "linear"),
    **dict.fromkeys(("Conv", "ConvTranspose", "Conv1d", "Conv2d", "Conv3d"), "conv"),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"), "conv"),
    **dict.fromkeys(("RNN", "LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell", "Bidirectional"), "recurrent"),
    **dict.fromkeys(("MultiHeadAttention", "MultiheadAttention"), "attention"),
    **dict.fromkeys(("Embed", "Embedding"), "embedding"),
    "BatchNorm": "batchnorm",
    **dict.fromkeys(("LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm"), "norm"),
    "Dropout": "dropout",
    "PReLU": "activation",
    **dict.fromkeys(("MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d"), "pool"),
    **dict.fromkeys(("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"), "pool"),
}
# Layers that are one operation to the reader of a forward pass; what they do inside is their own business.
WHOLE = ("linear", "conv", "recurrent", "attention", "embedding", "batchnorm", "norm", "dropout", "pool", "activation")
LIBRARIES = ("flax", "equinox")


def family_of(module: object) -> str:
    """Of a layer that Flax or Equinox brings; a subclass of the user's may do anything."""
    kind = type(module)
    if kind.__module__.split(".")[0] not in LIBRARIES:
        return "other"
    return FAMILIES.get(kind.__name__, "other")
