"""The cases' parts written by hand in NumPy: losses return their value and gradient, optimisers change arrays in place."""

from typing import Any

import numpy as np

from sleuth.testing import CannotBuild, Kit, Loop, Training
from tests.kits import numpy_layers as by_hand
from tests.kits.loops import Loader, batches

ACTIVATIONS = {"relu": by_hand.ReLU, "sigmoid": by_hand.Sigmoid, "tanh": by_hand.Tanh, "gelu": by_hand.GELU}
LAYERS = {
    "conv2d": by_hand.Conv2d,
    "batchnorm": by_hand.BatchNorm,
    "batchnorm2d": by_hand.BatchNorm2d,
    "layernorm": by_hand.LayerNorm,
    "dropout": by_hand.Dropout,
    "embedding": by_hand.Embedding,
    "flatten": by_hand.Flatten,
    "softmax": by_hand.Softmax,
    "log_softmax": by_hand.LogSoftmax,
    "max_pool": by_hand.MaxPool2d,
    "reshape": by_hand.Reshape,
    "offset": by_hand.Offset,
    "waves": by_hand.Waves,
    "log": by_hand.Log,
    "mean": by_hand.Mean,
    "standardise": by_hand.Standardise,
    "tanh_by_hand": by_hand.TanhByHand,
}


class CrossEntropy:
    """With the softmax inside; class indices, or one row of probabilities a sample."""

    def __init__(self, label_smoothing: float = 0.0, weight: np.ndarray | None = None, ignore_index: int | None = None) -> None:
        self.label_smoothing = label_smoothing
        self.weight = weight
        self.ignore_index = ignore_index

    def __call__(self, scores: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        if scores.ndim != 2 or len(scores) != len(target) or target.ndim > 2:
            raise ValueError(f"cross entropy wants scores (n, classes) and n classes; got {scores.shape} and {target.shape}")
        top = scores - scores.max(1, keepdims=True)
        logs = top - np.log(np.exp(top).sum(1, keepdims=True))
        wanted = self.wanted(target, scores)
        share = np.ones(len(scores), scores.dtype) if self.weight is None else self.weight[target].astype(scores.dtype)
        if self.ignore_index is not None:
            share = share * (target != self.ignore_index)
        share = (share / share.sum())[:, None]
        return float(-(share * wanted * logs).sum()), share * (np.exp(logs) * wanted.sum(1, keepdims=True) - wanted)

    def wanted(self, target: np.ndarray, scores: np.ndarray) -> np.ndarray:
        classes = scores.shape[1]
        if target.ndim == 2:
            wanted = target.astype(scores.dtype)
        else:
            wanted = np.zeros(scores.shape, scores.dtype)
            wanted[np.arange(len(target)), target] = 1
        return wanted * (1 - self.label_smoothing) + self.label_smoothing / classes


class NLL:
    def __call__(self, logs: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        rows = np.arange(len(target))
        grad = np.zeros_like(logs)
        grad[rows, target] = -1 / len(target)
        return float(-logs[rows, target].mean()), grad


class BCE:
    def __call__(self, p: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        _same_shape(p, target)
        p = np.clip(p, 1e-12 if p.dtype == np.float64 else 1e-7, 1 - 1e-7)
        value = -(target * np.log(p) + (1 - target) * np.log(1 - p)).mean()
        return float(value), ((p - target) / (p * (1 - p)) / p.size).astype(p.dtype)


class BCELogits:
    def __call__(self, scores: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        _same_shape(scores, target)
        p = 0.5 * (1 + np.tanh(scores / 2))
        value = (np.logaddexp(0, scores) - target * scores).mean()
        return float(value), ((p - target) / scores.size).astype(scores.dtype)


class MSE:
    def __call__(self, output: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        d = output - target
        return float((d**2).mean()), _summed_to(2 * d / d.size, output)


class L1:
    def __call__(self, output: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        d = output - target
        return float(np.abs(d).mean()), _summed_to(np.sign(d) / d.size, output)


LOSSES = {"cross-entropy": CrossEntropy, "nll": NLL, "bce": BCE, "bce-logits": BCELogits, "mse": MSE, "l1": L1}


def _same_shape(one: np.ndarray, other: np.ndarray) -> None:
    if one.shape != other.shape:
        raise ValueError(f"output {one.shape} and target {other.shape} must have the same shape")


def _summed_to(gradient: np.ndarray, output: np.ndarray) -> np.ndarray:
    """Back through a broadcast, should there have been one."""
    while gradient.ndim > output.ndim:
        gradient = gradient.sum(0)
    axes = tuple(i for i, n in enumerate(output.shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axes, keepdims=True).astype(output.dtype)


class SGD:
    def __init__(self, params: list[tuple[str, np.ndarray]], lr: float, momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        self.params = params
        self.lr = lr
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocity = {name: np.zeros_like(array) for name, array in params}

    def step(self, grads: dict[str, np.ndarray]) -> None:
        for name, array in self.params:
            gradient = grads[name] + self.weight_decay * array
            self.velocity[name] = self.momentum * self.velocity[name] + gradient
            array -= (self.lr * self.velocity[name]).astype(array.dtype)


class Adam:
    def __init__(
        self,
        params: list[tuple[str, np.ndarray]],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.params = params
        self.lr = lr
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.steps = 0
        self.mean = {name: np.zeros_like(array) for name, array in params}
        self.square = {name: np.zeros_like(array) for name, array in params}

    def step(self, grads: dict[str, np.ndarray]) -> None:
        self.steps += 1
        one, two = self.betas
        for name, array in self.params:
            gradient = grads[name] + self.weight_decay * array
            self.mean[name] = one * self.mean[name] + (1 - one) * gradient
            self.square[name] = two * self.square[name] + (1 - two) * gradient**2
            mean = self.mean[name] / (1 - one**self.steps)
            square = self.square[name] / (1 - two**self.steps)
            array -= (self.lr * mean / (np.sqrt(square) + self.eps)).astype(array.dtype)


OPTIMISERS = {"adam": Adam, "sgd": SGD}


NO_GRAPH = "NumPy records no graph of what was computed: backward is a function of yours that keeps what it needs itself"
ABSENT = {
    "graph-retained": NO_GRAPH,
    "hidden-state-not-detached": f"{NO_GRAPH}; a state that is carried on is an array without a history",
    "validation-builds-graph": NO_GRAPH,
    "host-synchronises": "NumPy computes on the host: there is no device to wait for",
    "workers-repeat-augmentation": "NumPy has no loader with worker processes: batches come from arrays and generators",
    "scheduler-before-optimiser": "NumPy has no schedulers: a rate is a number that the loop changes where it stands",
    "double-precision": "float64 is the precision that NumPy makes arrays in: a model in it is as NumPy made it, and no slip",
}


class NumpyKit(Kit):
    name = "numpy"
    absent = ABSENT

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> by_hand.Linear:
        return by_hand.Linear(inputs, outputs, bias)

    def activation(self, name: str) -> by_hand.Layer:
        return ACTIVATIONS[name]()

    def layer(self, name: str, *args: Any, **options: Any) -> by_hand.Layer:
        if name not in LAYERS:
            raise CannotBuild(f"the numpy kit has no layer {name}")
        try:
            return LAYERS[name](*args, **options)
        except TypeError as error:
            raise CannotBuild(f"the numpy kit's {name} lacks an option: {error}") from None

    def sequential(self, *layers: Any) -> by_hand.Sequential:
        return by_hand.Sequential(*layers)

    def weights(self, layer: Any) -> np.ndarray:
        return layer.weight.T.copy() if isinstance(layer, by_hand.Linear) else layer.weight.copy()

    def set_weights(self, layer: Any, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        layer.weight[...] = weight.T if isinstance(layer, by_hand.Linear) else weight
        if bias is not None:
            layer.bias[...] = bias

    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> Loader:
        return Loader(x, y, batch_size, shuffle)

    def loss(self, name: str, **options: Any) -> Any:
        if name not in LOSSES:
            raise CannotBuild(f"the numpy kit has no loss {name}")
        try:
            return LOSSES[name](**options)
        except TypeError as error:
            raise CannotBuild(f"the numpy kit's {name} lacks an option: {error}") from None

    def optimiser(self, model: Any, name: str = "adam", lr: float = 1e-3, **options: Any) -> Any:
        return OPTIMISERS[name](model.parameters(), lr=lr, **options)

    def loop(self, training: Training) -> Loop:
        subject = training.subject
        model, loss, optimiser = subject.model, subject.loss, subject.optimizer

        def run(w: object) -> None:
            with np.errstate(all="ignore"):  # of what overflows NumPy would warn
                for x, y in batches(subject, training.steps):
                    _, gradient = loss(model.forward(x), y)
                    optimiser.step(model.backward(gradient))

        return Loop(model, [optimiser], run, training.options)
