"""The optimiser takes its step, and every weight is where it was."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import windows
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


class PlainSGD(optim.Optimizer):
    """Gives the new value to a local name instead of to the parameter."""

    def __init__(self, params: Iterable[Tensor], lr: float = 0.1) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p = p - group["lr"] * p.grad


class CarefulAdam(optim.Adam):
    """Leaves out steps whose gradient is not finite; the test is the wrong way round."""

    def step(self, closure: Callable[[], Any] | None = None) -> None:
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        if all(torch.isfinite(g).all() for g in gradients):
            return
        super().step(closure)


class TidyRMSprop(optim.RMSprop):
    """Clears the gradients first, so that nobody has to think of it."""

    def step(self, closure: Callable[[], Any] | None = None) -> None:
        self.zero_grad()
        super().step(closure)


def mlp_with_own_sgd() -> Subject:
    model = mlp(64, 48, 10)
    train, validation = split_loaders(*digits())
    return Subject(model, train, nn.CrossEntropyLoss(), PlainSGD(model.parameters(), lr=0.1), validation)


def cnn_whose_steps_are_all_left_out() -> Subject:
    model = cnn()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), CarefulAdam(model.parameters(), lr=2e-3), validation)


def lstm_with_gradients_cleared_in_step() -> Subject:
    model = Recurrent(1, 1)
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.MSELoss(), TidyRMSprop(model.parameters(), lr=1e-3), validation)
