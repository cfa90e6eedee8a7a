"""The model cannot even be called: one layer gets something it cannot work with."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import mlp
from tests.confounders.material import ITEMS, USERS, ratings, waves
from tests.material import digit_images
from tests.zoo.data import split_loaders


class Net(nn.Module):
    """Copied from a tutorial for 28×28 images; the digits at hand are 8×8."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * 7 * 7, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(x)


class WaveGRU(nn.Module):
    """Two layers, but a start state for one."""

    def __init__(self, hidden: int = 24) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(1, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x: Tensor) -> Tensor:
        h0 = torch.zeros(1, x.size(0), self.hidden)
        out, _ = self.gru(x, h0)
        return self.out(out[:, -1, :])


class Recommender(nn.Module):
    """Scales the ids "as one does with inputs", so the table is asked for row 0.37."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(USERS + ITEMS, 8)
        self.body = mlp(16, 32, 1)

    def forward(self, pairs: Tensor) -> Tensor:
        shifted = pairs + torch.tensor([0, USERS])
        scaled = shifted / (USERS + ITEMS)
        return self.body(self.table(scaled).flatten(1))


def cnn_sized_for_larger_images() -> Subject:
    model = Net()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def gru_with_wrong_start_state() -> Subject:
    model = WaveGRU()
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def embedding_asked_with_floats() -> Subject:
    model = Recommender()
    train, validation = split_loaders(*ratings())
    return Subject(model, train, nn.MSELoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)
