"""The cases' parts in PyTorch."""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from sleuth.core.subject import call_model, take_apart
from sleuth.testing import CannotBuild, Kit, Loop, Training
from tests.kits.loops import batches

ACTIVATIONS = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "gelu": nn.GELU}
LAYERS = {
    "conv2d": nn.Conv2d,
    "batchnorm": nn.BatchNorm1d,
    "batchnorm2d": nn.BatchNorm2d,
    "layernorm": nn.LayerNorm,
    "dropout": nn.Dropout,
    "embedding": nn.Embedding,
    "flatten": nn.Flatten,
    "softmax": nn.Softmax,
    "log_softmax": nn.LogSoftmax,
    "max_pool": nn.MaxPool2d,
}
LOSSES = {
    "cross-entropy": nn.CrossEntropyLoss,
    "nll": nn.NLLLoss,
    "bce": nn.BCELoss,
    "bce-logits": nn.BCEWithLogitsLoss,
    "mse": nn.MSELoss,
    "l1": nn.L1Loss,
}
OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


class Reshape(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(*self.shape)


class Log(nn.Module):
    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(x + self.offset)


class Mean(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(self.axis)


class Standardise(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance, mean = torch.var_mean(x, self.axis, correction=0, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5)


class Offset(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.offset


class Waves(nn.Module):
    def __init__(self, inputs: int, outputs: int, frequency: float) -> None:
        super().__init__()
        self.register_buffer("directions", torch.randn(inputs, outputs) * frequency)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x @ self.directions)


class HandTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, right: bool) -> torch.Tensor:
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        ctx.right = right
        return y

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (y,) = ctx.saved_tensors
        return gradient * (1 - y**2 if ctx.right else 1 + y**2), None


class TanhByHand(nn.Module):
    def __init__(self, right: bool) -> None:
        super().__init__()
        self.right = right

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return HandTanh.apply(x, self.right)


OWN_LAYERS = {"offset": Offset, "waves": Waves, "mean": Mean, "standardise": Standardise}


class TorchKit(Kit):
    name = "torch"
    own_loader = True

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> nn.Module:
        return nn.Linear(inputs, outputs, bias=bias)

    def activation(self, name: str) -> nn.Module:
        return ACTIVATIONS[name]()

    def layer(self, name: str, *args: Any, **options: Any) -> nn.Module:
        if name == "reshape":
            return Reshape(*args)
        if name == "tanh_by_hand":
            return TanhByHand(*args)
        if name == "log":
            return Log(*args)
        if name in OWN_LAYERS:
            return OWN_LAYERS[name](*args)
        if name in ("softmax", "log_softmax"):
            return LAYERS[name](dim=args[0])
        if name not in LAYERS:
            raise CannotBuild(f"the torch kit has no layer {name}")
        return LAYERS[name](*args, **options)

    def sequential(self, *layers: nn.Module) -> nn.Module:
        return nn.Sequential(*layers)

    def weights(self, layer: nn.Module) -> np.ndarray:
        return layer.weight.detach().numpy().copy()

    def set_weights(self, layer: nn.Module, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(weight))
            if bias is not None:
                layer.bias.copy_(torch.as_tensor(bias))

    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> DataLoader:
        data = TensorDataset(torch.as_tensor(x), torch.as_tensor(y))
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle, generator=torch.Generator().manual_seed(0))

    def loss(self, name: str, **options: Any) -> nn.Module:
        return LOSSES[name](**options)

    def optimiser(self, model: nn.Module, name: str = "adam", lr: float = 1e-3, **options: Any) -> torch.optim.Optimizer:
        return OPTIMISERS[name](model.parameters(), lr=lr, **options)

    def loop(self, training: Training) -> Loop:
        subject = training.subject
        model, optimiser = subject.model, subject.optimizer

        def run(w: object) -> None:
            model.train()
            for batch in batches(subject, training.steps):
                optimiser.zero_grad()
                _loss(subject, batch).backward()
                optimiser.step()

        return Loop(model, [optimiser], run, training.options)


def _loss(subject: Subject, batch: Any) -> torch.Tensor:
    if subject.step is not None:
        return subject.step(subject.model, batch)
    parts = take_apart(batch, subject.split)
    return subject.loss(call_model(subject.model, subject.model.forward, parts.inputs), parts.target)
