"""A hand-written backward does not give the derivative of its forward."""

from typing import Any

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent
from tests.confounders.material import windows
from tests.material import digits, wine
from tests.zoo.data import split_loaders


class SwishFunction(torch.autograd.Function):
    """The product rule was applied to one factor only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * x * s * (1 - s)


class Swish(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return SwishFunction.apply(x)


class LinearFunction(torch.autograd.Function):
    """Averages over the batch what is to be summed: the loss has taken the mean already."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x / len(x), grad.mean(0)


class HandmadeLinear(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * inputs**-0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return LinearFunction.apply(x, self.weight, self.bias)


class LogCosh(torch.autograd.Function):
    """The difference is taken the other way round in backward, so training climbs."""

    @staticmethod
    def forward(ctx: Any, prediction: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(prediction, target)
        return torch.log(torch.cosh(prediction - target)).mean()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        prediction, target = ctx.saved_tensors
        return grad * torch.tanh(target - prediction) / prediction.numel(), None


def mlp_with_own_swish() -> Subject:
    model = nn.Sequential(nn.Linear(64, 48), Swish(), nn.Linear(48, 48), Swish(), nn.Linear(48, 10))
    train, validation = split_loaders(*digits())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def autoencoder_with_own_linear() -> Subject:
    model = nn.Sequential(HandmadeLinear(13, 32), nn.Tanh(), HandmadeLinear(32, 6), nn.Tanh(), HandmadeLinear(6, 13))
    x, _ = wine()
    train, validation = split_loaders(x, x)
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.1, momentum=0.9), validation)


def lstm_with_own_loss() -> Subject:
    model = Recurrent(1, 1)
    train, validation = split_loaders(*windows())
    return Subject(model, train, LogCosh.apply, optim.RMSprop(model.parameters(), lr=1e-3), validation)
