"""Sick trainings that differ from healthy ones in the wiring of the loss alone."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as fn

from sleuth import Subject
from tests.checks.loss_zoo import ctc
from tests.checks.loss_zoo_material import focal, mlp, painter, pixels, strokes, teacher, training
from tests.material import cancer, diabetes

SICK: dict[str, tuple[str, Callable[[], Subject]]] = {}


def sick(name: str) -> Callable[[Callable[[], Subject]], Callable[[], Subject]]:
    def keep(build: Callable[[], Subject]) -> Callable[[], Subject]:
        SICK[build.__name__] = (name, build)
        return build

    return keep


@sick("double-softmax")
def focal_loss_of_probabilities() -> Subject:
    return training(mlp(64, 10, nn.Softmax(1)), pixels(), focal)


@sick("double-softmax")
def cross_entropy_by_hand_of_probabilities() -> Subject:
    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (torch.logsumexp(out, 1) - out[torch.arange(len(y)), y]).mean()

    return training(mlp(64, 10, nn.Softmax(1)), pixels(), loss)


@sick("double-softmax")
def distillation_of_probabilities() -> Subject:
    known_by = teacher()

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        with torch.no_grad():
            known = known_by(batch[0]).softmax(1)
        return -(known * model(batch[0]).log_softmax(1)).sum(1).mean()

    return training(mlp(64, 10, nn.Softmax(1)), pixels(), step=step)


@sick("double-softmax")
def sigmoid_before_yes_or_no() -> Subject:
    x, y = cancer()
    return training(mlp(30, 1, nn.Sigmoid()), (x, y.astype(np.float32)[:, None]), nn.BCEWithLogitsLoss())


@sick("double-softmax")
def sigmoid_before_dice() -> Subject:
    x, y = strokes()

    def dice(out: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        p = torch.sigmoid(out)
        both = (p * t).sum((2, 3))
        return 1 - ((2 * both + 1) / (p.sum((2, 3)) + t.sum((2, 3)) + 1)).mean()

    return training(nn.Sequential(*painter(1), nn.Sigmoid()), (x, (y > 1).astype(np.float32)[:, None]), dice)


@sick("double-softmax")
def softmax_before_segmentation() -> Subject:
    return training(nn.Sequential(*painter(3), nn.Softmax(1)), strokes(), nn.CrossEntropyLoss())


@sick("missing-log-softmax")
def raw_scores_into_nll() -> Subject:
    return training(mlp(64, 10), pixels(), nn.NLLLoss())


@sick("missing-log-softmax")
def raw_scores_into_nll_by_hand() -> Subject:
    return training(mlp(64, 10), pixels(), lambda out, y: -out[torch.arange(len(y)), y].mean())


@sick("missing-log-softmax")
def raw_scores_into_ctc() -> Subject:
    subject = ctc()
    loader = subject.train

    class Raw(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(8, 48, batch_first=True, bidirectional=True)
            self.head = nn.Linear(96, 11)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(x)[0])

    model = Raw()
    return Subject(model, loader, subject.loss, torch.optim.Adam(model.parameters(), lr=3e-3))


@sick("missing-log-softmax")
def raw_scores_into_kl() -> Subject:
    known_by = teacher()

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        with torch.no_grad():
            known = known_by(batch[0]).softmax(1)
        return fn.kl_div(model(batch[0]), known, reduction="batchmean")

    return training(mlp(64, 10), pixels(), step=step)


@sick("loss-broadcasts")
def a_column_against_a_row_by_hand() -> Subject:
    x, y = diabetes()
    return training(mlp(10, 1), (x, y[:, 0]), lambda out, t: fn.huber_loss(out, t))


@sick("loss-broadcasts")
def a_mixture_against_a_row() -> Subject:
    x, y = diabetes()

    def loss(out: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return ((out - t).abs() + 0.1 * (out - t) ** 2).mean()

    return training(mlp(10, 1), (x, y[:, 0]), loss)


@sick("wrong-loss-for-task")
def yes_and_no_for_signs() -> Subject:
    x, y = cancer()
    return training(mlp(30, 1), (x, y.astype(np.float32)[:, None]), nn.SoftMarginLoss())


@sick("wrong-loss-for-task")
def squares_on_class_indices() -> Subject:
    x, y = pixels()
    return training(mlp(64, 1), (x, y), lambda out, t: ((out.squeeze(1) - t) ** 2).mean())


@sick("wrong-last-activation")
def relu_before_signed_values() -> Subject:
    return training(mlp(10, 1, nn.ReLU()), diabetes(), lambda out, t: ((out - t) ** 2).mean())


@sick("wrong-last-activation")
def exp_before_signed_values() -> Subject:
    class Positive(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp(10, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.exp(self.net(x))

    return training(Positive(), diabetes(), nn.L1Loss())


@sick("single-unit-softmax")
def softmax_of_one_unit() -> Subject:
    x, y = cancer()
    return training(mlp(30, 1, nn.Softmax(1)), (x, y.astype(np.float32)[:, None]), nn.BCELoss())


@sick("output-target-mismatch")
def repeated_targets() -> Subject:
    return training(mlp(10, 3), diabetes(), nn.L1Loss())
