"""The targets can be learned by heart without looking at the inputs: they are the same for every sample."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, autoencoder, per_position
from tests.confounders.material import TOKENS, masks, tagged, windows
from tests.zoo.data import split_loaders


class PositionTagger(nn.Module):
    def __init__(self, length: int = 12, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.positions = nn.Parameter(torch.randn(1, length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.encoder(self.embedding(ids) + self.positions))


def one_mask_for_all_pictures() -> Subject:
    """A slip in the file name: each picture gets the first one's mask."""
    x, mask = masks()
    y = np.repeat(mask[:1].reshape(1, 64), len(x), axis=0)
    model = autoencoder()
    train, validation = split_loaders(x.reshape(-1, 64), y)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def tags_by_place() -> Subject:
    """The tag file repeats one, two, three, whatever the tokens are."""
    x, _ = tagged()
    y = np.tile(np.arange(x.shape[1]) % 3, (len(x), 1))
    model = PositionTagger()
    train, validation = split_loaders(x, y)
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=2e-3), validation)


def the_average_day() -> Subject:
    """Every target is the average day, not the day that follows the window."""
    x, _ = windows()
    hours = np.arange(24) / 24 * 2 * np.pi
    day = np.sin(hours) + 0.5 * np.cos(2 * hours)
    noise = np.random.default_rng(0).normal(0, 0.02, (len(x), 24))
    model = Recurrent(1, 24, nn.GRU)
    train, validation = split_loaders(x, (day + noise).astype(np.float32))
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.5, momentum=0.9), validation)
