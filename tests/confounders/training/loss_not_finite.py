"""After a while of good training the loss is NaN, and stays so."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import mlp
from tests.confounders.material import TOKENS, table, tagged, windows
from tests.zoo.data import loader


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Written out as in the book. A probability that has become exactly zero has no logarithm."""
    chances = torch.softmax(scores, dim=1)
    wanted = nn.functional.one_hot(labels, scores.shape[1]).float()
    return -(wanted * torch.log(chances)).sum(1).mean()


def table_with_the_logarithm_of_zero() -> Loop:
    """Sharper with every epoch, until a class is out of the question."""
    model = mlp(20, 64, 4)
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    x, y = table()
    batches = loader(x, y)

    def run(w: object) -> None:
        model.train()
        for epoch in range(24):
            for rows, labels in batches:
                optimiser.zero_grad()
                cross_entropy(model(rows) / 0.88**epoch, labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class Reader(nn.Module):
    """Attends to real tokens only; a line without any attends to nothing."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.query = nn.Parameter(torch.randn(width) / width**0.5)
        self.keys, self.values = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, ids: Tensor) -> Tensor:
        words = self.embedding(ids)
        scores = self.keys(words) @ self.query
        weights = torch.softmax(scores.masked_fill(ids == 0, float("-inf")), dim=1)
        return self.head((weights.unsqueeze(2) * self.values(words)).sum(1)).squeeze(1)


def sequences_with_one_empty_line() -> Loop:
    """One line of eight hundred is empty; it comes up late in the first epoch."""
    ids, _ = tagged(shortest=5)
    ids = ids.copy()
    share = ((ids > TOKENS // 2).sum(1) / (ids > 0).sum(1)).astype("float32")
    ids[700] = 0
    model = Reader()
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    batches = loader(ids, (share - share.mean()) / share.std(), batch_size=16)

    def fit(x: Tensor, y: Tensor) -> float:
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimiser.step()
        return loss.item()

    def run(w: object) -> None:
        model.train()
        for _ in range(6):
            losses = [fit(x, y) for x, y in batches]
            w.log(loss=losses[-1])

    return Loop(model, [optimiser], run)


class Forecast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 32, batch_first=True)
        self.head = nn.Linear(32, 20)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


def gaps_averaged_over_nothing() -> Loop:
    """Only readings that arrived count. In a batch where none did, the mean is nought by nought."""
    x, following = windows()
    model = Forecast()
    optimiser = optim.AdamW(model.parameters(), lr=3e-3)
    batches = loader(x, following.repeat(20, axis=1), batch_size=8)

    def run(w: object) -> None:
        model.train()
        for epoch in range(3):
            for number, (signal, target) in enumerate(batches):
                outage = epoch == 1 and number == 90
                arrived = torch.zeros_like(target) if outage else (torch.rand_like(target) < 0.7).float()
                errors = (model(signal) - target).square() * arrived
                loss = errors.sum() / arrived.sum()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()

    return Loop(model, [optimiser], run)
