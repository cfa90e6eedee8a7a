"""The cases' parts in MLX."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

from sleuth.core.subject import call_model, take_apart
from sleuth.testing import CannotBuild, Kit, Loop, Training
from tests.kits.loops import Loader, batches

# Else MLX has a C++ compiler translate each activation, which takes longer than the tests.
mx.disable_compile()

ACTIVATIONS = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "gelu": nn.GELU}


class Reshape(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self._shape = shape

    def __call__(self, x: mx.array) -> mx.array:
        return x.reshape(*self._shape)


class Flatten(nn.Module):
    def __call__(self, x: mx.array) -> mx.array:
        return mx.flatten(x, 1)


class ChannelsLast(nn.Module):
    """The cases' images come as torch wants them."""

    def __call__(self, x: mx.array) -> mx.array:
        return x.transpose(0, 2, 3, 1)


class Softmax(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        return mx.softmax(x, axis=self.axis)


class LogSoftmax(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        return nn.log_softmax(x, axis=self.axis)


class Log(nn.Module):
    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def __call__(self, x: mx.array) -> mx.array:
        return mx.log(x + self.offset)


class Mean(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        return x.mean(self.axis)


class Standardise(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        mean, variance = mx.mean(x, self.axis, keepdims=True), mx.var(x, self.axis, keepdims=True)
        return (x - mean) / mx.sqrt(variance + 1e-5)


class Offset(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.offset = mx.zeros(shape)

    def __call__(self, x: mx.array) -> mx.array:
        return x + self.offset


class Waves(nn.Module):
    def __init__(self, inputs: int, outputs: int, frequency: float) -> None:
        super().__init__()
        self._directions = mx.random.normal((inputs, outputs)) * frequency

    def __call__(self, x: mx.array) -> mx.array:
        return mx.sin(x @ self._directions)


def hand_tanh(right: bool) -> Callable[[mx.array], mx.array]:
    @mx.custom_function
    def tanh(x: mx.array) -> mx.array:
        return mx.tanh(x)

    @tanh.vjp
    def gradient(primal: mx.array, cotangent: mx.array, output: mx.array) -> mx.array:
        return cotangent * (1 - output**2 if right else 1 + output**2)

    return tanh


class TanhByHand(nn.Module):
    def __init__(self, right: bool) -> None:
        super().__init__()
        self.right = right

    def __call__(self, x: mx.array) -> mx.array:
        return hand_tanh(self.right)(x)


def batch_norm(width: int) -> nn.Module:
    return nn.BatchNorm(width)


LAYERS: dict[str, Callable[..., nn.Module]] = {
    "conv2d": lambda *args, **options: nn.Sequential(ChannelsLast(), nn.Conv2d(*args, **options)),
    "batchnorm": batch_norm,
    "layernorm": nn.LayerNorm,
    "dropout": nn.Dropout,
    "embedding": nn.Embedding,
    "flatten": Flatten,
    "softmax": Softmax,
    "log_softmax": LogSoftmax,
    "max_pool": nn.MaxPool2d,
    "reshape": Reshape,
    "offset": Offset,
    "waves": Waves,
    "log": Log,
    "mean": Mean,
    "standardise": Standardise,
    "tanh_by_hand": TanhByHand,
}


def cross_entropy(reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0) -> Any:
    def loss(scores: mx.array, target: mx.array) -> mx.array:
        if ignore_index is None:
            return nn.losses.cross_entropy(scores, target, label_smoothing=label_smoothing, reduction=reduction)
        counts = target != ignore_index
        each = nn.losses.cross_entropy(scores, mx.where(counts, target, 0), weights=counts.astype(scores.dtype))
        return each.sum() / counts.sum()

    return loss


def mse(output: mx.array, target: mx.array) -> mx.array:
    """As it is written by hand: `nn.losses.mse_loss` refuses shapes that differ."""
    return mx.mean(mx.square(output - target))


LOSSES: dict[str, Callable[..., Any]] = {
    "cross-entropy": cross_entropy,
    "nll": lambda: lambda logs, target: nn.losses.nll_loss(logs, target, reduction="mean"),
    "bce": lambda: lambda p, target: nn.losses.binary_cross_entropy(p, target, with_logits=False),
    "bce-logits": lambda: lambda scores, target: nn.losses.binary_cross_entropy(scores, target),
    "mse": lambda: mse,
    "l1": lambda: lambda output, target: nn.losses.l1_loss(output, target),
}


def _array(values: np.ndarray) -> mx.array:
    return mx.array(values, mx.float64) if values.dtype == np.float64 else mx.array(values)


class MlxKit(Kit):
    name = "mlx"
    absent: ClassVar[Mapping[str, str]] = {
        "gradients-erased": "there is no zero_grad: nn.value_and_grad returns the gradients, and nothing clears them",
        "hidden-state-not-detached": "nn.value_and_grad differentiates only what happens inside its function: a state from an "
        "earlier batch is a constant there",
        "host-synchronises": "it needs the GPU of Apple silicon; on a CPU, whoever reads a value waits for nobody else",
        "missing-zero-grad": "nn.value_and_grad returns new gradients every time: nothing piles up",
        "out-of-memory": "on a CPU, MLX 0.32 does not raise when there is no memory: the process ends with a segmentation fault",
        "parameters-not-optimised": "an optimiser of MLX holds no parameters: it changes whatever it is given gradients of",
        "scheduler-before-optimiser": "a schedule is a function of the steps that the optimiser has taken: nobody steps it",
        "validation-builds-graph": "MLX records nothing for a gradient outside nn.value_and_grad: there is no no_grad to forget",
        "waiting-for-data": "MLX has no loader of its own: batches come from plain Python iterables, and the time that one takes "
        "is not told apart from what else a loop does between two steps",
        "workers-repeat-augmentation": "MLX has no loader with worker processes",
    }

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> nn.Module:
        return nn.Linear(inputs, outputs, bias=bias)

    def activation(self, name: str) -> nn.Module:
        return ACTIVATIONS[name]()

    def layer(self, name: str, *args: Any, **options: Any) -> nn.Module:
        if name not in LAYERS:
            raise CannotBuild(f"the mlx kit has no layer {name}")
        try:
            return LAYERS[name](*args, **options)
        except TypeError as error:
            raise CannotBuild(f"the mlx kit's {name} lacks an option: {error}") from None

    def sequential(self, *layers: nn.Module) -> nn.Module:
        return nn.Sequential(*layers)

    def weights(self, layer: nn.Module) -> np.ndarray:
        if isinstance(layer, nn.Sequential):
            return np.moveaxis(np.array(layer.layers[1].weight), -1, 1)
        return np.array(layer.weight)

    def set_weights(self, layer: nn.Module, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        if isinstance(layer, nn.Sequential):  # a convolution behind its ChannelsLast
            layer, weight = layer.layers[1], np.moveaxis(weight, 1, -1)
        layer.weight = mx.array(np.ascontiguousarray(weight), mx.float32)
        if bias is not None:
            layer.bias = mx.array(bias, mx.float32)

    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> Loader:
        return Loader(x, y, batch_size, shuffle, _array)

    def loss(self, name: str, **options: Any) -> Any:
        try:
            return LOSSES[name](**options)
        except TypeError as error:
            raise CannotBuild(f"the mlx kit's {name} lacks an option: {error}") from None

    def optimiser(self, model: nn.Module, name: str = "adam", lr: float = 1e-3, **options: Any) -> optim.Optimizer:
        if name == "sgd":
            return optim.SGD(lr, **options)
        return optim.AdamW(lr, bias_correction=True, **options) if options else optim.Adam(lr, bias_correction=True)

    def loop(self, training: Training) -> Loop:
        subject = training.subject
        model, optimiser = subject.model, subject.optimizer

        def loss_fn(*batch: Any) -> mx.array:
            if subject.step is not None:
                return subject.step(model, batch)
            parts = take_apart(batch, subject.split)
            return subject.loss(call_model(model, model.__call__, parts.inputs), parts.target)

        def run(w: object) -> None:
            model.train()
            loss_and_grad = nn.value_and_grad(model, loss_fn)
            for batch in batches(subject, training.steps):
                loss, gradients = loss_and_grad(*batch)
                optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)

        return Loop(model, [optimiser], run, training.options)
