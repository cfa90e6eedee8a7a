"""Hand the targets out to other samples, and the loss stays what it was."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import friedman, windows
from tests.material import digit_images
from tests.zoo.data import split_loaders


def confident_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The variable for the prediction was called `labels` too, once."""
    labels = logits.argmax(dim=1)
    return F.cross_entropy(logits, labels)


def distribution_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """Sorts both sides "to make them comparable", and so forgets who is whose."""
    ours, theirs = prediction.flatten().sort().values, target.flatten().sort().values
    return torch.mean(torch.abs(ours - theirs))


def step_on_means(model: nn.Module, batch: list[Tensor]) -> Tensor:
    """The mean is taken before the square."""
    x, y = batch
    return (model(x).mean() - y.mean()) ** 2


def cnn_believing_itself() -> Subject:
    model = cnn()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, confident_loss, optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def regression_on_sorted_values() -> Subject:
    model = mlp(10, 48, 1)
    train, validation = split_loaders(*friedman())
    return Subject(model, train, distribution_loss, optim.AdamW(model.parameters(), lr=3e-3), validation)


def forecast_of_the_mean() -> Subject:
    model = Recurrent(1, 1)
    train, validation = split_loaders(*windows())
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    return Subject(model, train, step=step_on_means, optimizer=optimiser, validation=validation)
