"""The loss is computed, but the way back raises."""

import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from tests.confounders.bodies import ResidualNet
from tests.confounders.material import colours, facts, waves
from tests.zoo.data import split_loaders


class Gated(nn.Module):
    """`*=` overwrites the sigmoid's output, which its derivative needs."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 48)
        self.gate = nn.Linear(64, 48)
        self.out = nn.Linear(48, 4)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(x))
        gate *= torch.relu(self.fc(x))
        return self.out(gate)


class Stateful(nn.Module):
    """The state of the last batch is the start of this one, with its whole history."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 32, batch_first=True)
        self.fc = nn.Linear(32, 3)
        self.hidden: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.hidden is not None and self.hidden.shape[1] != len(x):
            self.hidden = None
        out, self.hidden = self.rnn(x, self.hidden)
        return self.fc(out[:, -1])


def gate_changed_in_place() -> Subject:
    model = Gated()
    train, validation = split_loaders(*facts())
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def gru_carrying_its_graph_along() -> Subject:
    model = Stateful()
    x, y = waves()
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    train = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3))


def residual_net_with_one_loss_per_sample() -> Subject:
    model = ResidualNet(channels=3)
    train, validation = split_loaders(*colours())
    loss = nn.CrossEntropyLoss(reduction="none")
    return Subject(model, train, loss, optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)
