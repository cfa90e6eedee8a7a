"""Dropout throws so much away, or throws away the answer itself, that little is left to learn with."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Attentive
from tests.confounders.material import WORDS, sentences, table
from tests.material import digits
from tests.zoo.data import split_loaders


class Sentiment(nn.Module):
    """Dropout on the scores: half of the answers are zero whatever was learned."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16, padding_idx=0)
        self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(48, 2)
        self.dropout = nn.Dropout(0.5)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.rnn(self.embedding(ids))
        return self.dropout(self.fc(states.mean(dim=1)))


class Regularised(nn.Module):
    """Nine of ten units dropped, twice, and without a dropout layer to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(torch.relu(self.fc1(x)), p=0.9, training=self.training)
        h = F.dropout(torch.relu(self.fc2(h)), p=0.9, training=self.training)
        return self.fc3(h)


def lstm_with_dropped_answers() -> Subject:
    model = Sentiment()
    train, validation = split_loaders(*sentences())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def mlp_with_functional_dropout() -> Subject:
    model = Regularised()
    train, validation = split_loaders(*table())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.01, momentum=0.9), validation)


def transformer_keeping_a_tenth() -> Subject:
    """Someone read the argument as the share to keep."""
    model = Attentive(features=8, length=8, outputs=10, dropout=0.9)
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=1e-3), validation)
