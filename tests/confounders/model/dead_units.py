"""Most units of a layer are zero whatever the sample, so neither signal nor gradient gets through them."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import WORDS, friedman, sentences
from tests.material import digit_images
from tests.zoo.data import split_loaders


class TwoSided(nn.Module):
    """Meant to keep both signs of the features, but the sign is already gone: the second ReLU sees nothing above zero."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.first = nn.ReLU()
        self.mix = nn.Conv2d(16, 24, 3, padding=1)
        self.second = nn.ReLU()
        self.flip = nn.ReLU()
        self.head = nn.Linear(24 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.second(self.mix(self.first(self.conv(x))))
        h = nn.functional.adaptive_max_pool2d(self.flip(-h), 2)
        return self.head(h.flatten(1))


class SparseText(nn.Module):
    """A shrinking activation whose threshold is far above what these units ever reach."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 24, padding_idx=0)
        self.hidden = nn.Linear(24, 48)
        self.shrink = nn.Hardshrink(lambd=4.0)
        self.out = nn.Linear(48, 1)

    def forward(self, ids: Tensor) -> Tensor:
        h = self.shrink(self.hidden(self.embedding(ids).mean(1)))
        return self.out(h).squeeze(1)


def cnn_with_a_relu_after_a_sign_flip() -> Subject:
    model = TwoSided()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def text_shrunk_to_nothing() -> Subject:
    model = SparseText()
    x, y = sentences()
    train, validation = split_loaders(x, y.astype("float32"))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def regression_below_the_threshold() -> Subject:
    """Most biases of the second layer are far below zero, as after a step that was much too large."""
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    with torch.no_grad():
        model[2].bias[4:] -= 6.0
    train, validation = split_loaders(*friedman())
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)
