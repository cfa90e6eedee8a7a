"""The scores are squashed to probabilities, and then the loss squashes them once more."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import LetterModel
from tests.confounders.material import facts, letters
from tests.material import digit_images
from tests.zoo.data import split_loaders


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 2 * 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.softmax(self.fc(x.flatten(1)), dim=1)


def language_loss(logits: Tensor, targets: Tensor) -> Tensor:
    probabilities = torch.softmax(logits, dim=-1)
    return F.cross_entropy(probabilities.reshape(-1, probabilities.shape[-1]), targets.reshape(-1))


def cnn_ending_in_softmax() -> Subject:
    model = ConvNet()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1, momentum=0.9), validation)


def multi_label_ending_in_sigmoid() -> Subject:
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 4), nn.Sigmoid())
    train, validation = split_loaders(*facts())
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def language_model_with_softmax_in_loss() -> Subject:
    model = LetterModel()
    train, validation = split_loaders(*letters())
    return Subject(model, train, language_loss, optim.AdamW(model.parameters(), lr=2e-3), validation)
