"""The first loss is far above what plain guessing would give: the untrained model is confidently wrong."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import per_position, segmenter
from tests.confounders.material import LETTERS, letters, masks
from tests.material import digit_images
from tests.zoo.data import split_loaders


class CosineClassifier(nn.Module):
    """Similarities are divided by a temperature borrowed from contrastive learning, and then some."""

    def __init__(self, temperature: float = 0.01) -> None:
        super().__init__()
        self.temperature = temperature
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()
        )
        self.project = nn.Linear(32 * 16, 32)
        self.prototypes = nn.Parameter(torch.randn(10, 32))

    def forward(self, x: Tensor) -> Tensor:
        h = self.project(self.features(x).flatten(1))
        return F.normalize(h, dim=1) @ F.normalize(self.prototypes, dim=1).T / self.temperature


class TiedLSTM(nn.Module):
    """The output shares the embedding, whose rows are as long as they come: eight and more."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> Tensor:
        h, _ = self.lstm(self.embedding(ids))
        return self.norm(h) @ self.embedding.weight.T


def cosine_classifier_too_cold() -> Subject:
    model = CosineClassifier()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-3), validation)


def tied_letters() -> Subject:
    model = TiedLSTM()
    train, validation = split_loaders(*letters())
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=2e-3), validation)


def segmentation_with_a_wrong_prior() -> Subject:
    """The last bias was set for strokes as rare as one in ten thousand; here a third of the pixels are stroke."""
    model = segmenter(1)
    nn.init.constant_(model[-1].bias, -9.2)
    train, validation = split_loaders(*masks())
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optimiser, validation)
