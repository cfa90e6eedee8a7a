"""The training set is a few samples many times over."""

import numpy as np
import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Dataset

from sleuth import Subject
from tests.confounders.bodies import BagOfWords, cnn, mlp
from tests.confounders.material import cut, sentences
from tests.material import digit_images, wine
from tests.zoo.data import loader


class Slices(Dataset):
    """Eight slices of each picture were planned; all eight come out the same."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)

    def __len__(self) -> int:
        return 8 * len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.images[i // 8], self.labels[i // 8]


def table_repeated_for_length() -> Subject:
    """Each wine a dozen times, "to have more data"."""
    (x, y), held_out = cut(*wine())
    model = mlp(13, 16, 3)
    train, validation = loader(np.repeat(x, 12, axis=0), np.repeat(y, 12)), loader(*held_out, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def images_behind_a_wrong_index() -> Subject:
    (x, y), (held_x, held_y) = cut(*digit_images())
    model = cnn()
    train = DataLoader(Slices(x[:200], y[:200]), batch_size=32, shuffle=True)
    validation = loader(held_x, held_y, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def boilerplate_in_a_crawl() -> Subject:
    """Sixty per cent of the crawl are the same ten texts."""
    (x, y), held_out = cut(*sentences())
    again = np.random.default_rng(0).integers(0, 10, 1200)
    model = BagOfWords()
    train = loader(np.concatenate([x, x[again]]), np.concatenate([y, y[again]]))
    validation = loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=3e-3), validation)
