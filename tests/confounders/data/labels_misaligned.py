"""Inputs and labels are each fine, but they are not each other's."""

import numpy as np
import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Dataset

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import cut, friedman, waves
from tests.material import digit_images
from tests.zoo.data import loader


class Recordings(Dataset):
    """The first line of the label file was taken for its header: label i belongs to recording i + 1."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = torch.from_numpy(x), torch.from_numpy(y)

    def __len__(self) -> int:
        return len(self.x) - 1

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.x[i], self.y[i + 1]


def images_shuffled_alone() -> Subject:
    (x, y), held_out = cut(*digit_images())
    np.random.default_rng(0).shuffle(x)
    model = cnn()
    train, validation = loader(x, y), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def recordings_off_by_one() -> Subject:
    x, y = waves()
    model = Recurrent(1, 3)
    train = DataLoader(Recordings(x[:640], y[:640]), batch_size=32, shuffle=True)
    validation = loader(x[640:], y[640:], batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def regression_rolled_by_seven() -> Subject:
    x, y = friedman()
    model = mlp(10, 48, 1)
    train = loader(x[:640], np.roll(y[:640], 7, axis=0))
    validation = loader(x[640:], y[640:], batch_size=64, shuffle=False)
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=3e-3), validation)
