"""Probabilities sum to one along the batch, the width or the time instead of along the classes."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Tagger, segmenter
from tests.confounders.material import masks, tagged
from tests.material import digits
from tests.zoo.data import split_loaders


class PixelClasses(nn.Module):
    """-1 is the last axis: the width of an image, not its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.net = segmenter(2)

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(self.net(x), dim=-1)


class TimeNormalised(nn.Module):
    """Axis 1 was right for (n, classes); with (n, t, classes) it is the time."""

    def __init__(self) -> None:
        super().__init__()
        self.tagger = Tagger()
        self.softmax = nn.Softmax(dim=1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.softmax(self.tagger(ids))


def negative_log_likelihood(probabilities: Tensor, tags: Tensor) -> Tensor:
    return -torch.log(probabilities.gather(-1, tags.unsqueeze(-1)) + 1e-9).mean()


def mlp_over_the_batch() -> Subject:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.LogSoftmax(dim=0))
    train, validation = split_loaders(*digits())
    return Subject(model, train, nn.NLLLoss(), optim.SGD(model.parameters(), lr=0.1, momentum=0.9), validation)


def segmentation_over_the_width() -> Subject:
    model = PixelClasses()
    x, y = masks()
    train, validation = split_loaders(x, y[:, 0].astype("int64"))
    return Subject(model, train, nn.NLLLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def tagger_over_time() -> Subject:
    model = TimeNormalised()
    train, validation = split_loaders(*tagged())
    return Subject(model, train, negative_log_likelihood, optim.AdamW(model.parameters(), lr=3e-3), validation)
