"""The loss is an ordinary number, and on the way back from it a gradient becomes NaN or infinite."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import mlp
from tests.confounders.material import TOKENS, tagged
from tests.material import digits
from tests.zoo.data import loader


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp(64, 64, 16)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The distance of the two; where both are the same picture, the root is taken of nothing."""
        return torch.sqrt(((self.body(left) - self.body(right)) ** 2).sum(1))


def pairs_of_a_picture_with_itself() -> Loop:
    x, y = (torch.as_tensor(a) for a in digits())
    model = Siamese()
    optimiser = optim.Adam(model.parameters(), lr=1e-3)

    def pairs(count: int) -> object:
        """Drawn at random, so that now and then both are the same one."""
        for _ in range(count):
            first, second = torch.randint(len(x), (2, 32))
            yield x[first], x[second], (y[first] == y[second]).float()

    def run(w: object) -> None:
        model.train()
        for left, right, alike in pairs(400):
            gap = model(left, right)
            loss = (alike * gap**2 + (1 - alike) * (2 - gap).clamp(min=0) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return Loop(model, [optimiser], run)


class Gated(nn.Module):
    """A steep gate for each feature. The sigmoid is written out: where its exponential overflows, what comes out is a good
    zero, and what goes back is zero times infinity."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.gate = nn.Linear(64, 64), nn.Linear(64, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        openness = 1 / (1 + torch.exp(-30 * self.gate(x)))
        return self.head(torch.tanh(self.enter(x)) * openness)


def digits_behind_steep_gates() -> Loop:
    x, y = digits()
    model = Gated()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(x, y)

    def run(w: object) -> None:
        model.train()
        for _ in range(8):
            for rows, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(rows), labels).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()

    return Loop(model, [optimiser], run)


class Centred(nn.Module):
    """A layer norm by hand, the small number on the wrong side of the root: a row without variance breaks it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        gap = x - x.mean(-1, keepdim=True)
        return self.scale * gap / (gap.square().mean(-1, keepdim=True).sqrt() + 1e-6) + self.shift


class Tagging(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width, padding_idx=0)
        self.enter, self.norm = nn.Linear(width, width, bias=False), Centred(width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.norm(self.enter(self.embedding(ids))))[0])


def tagger_with_a_norm_by_hand() -> Loop:
    """All lines are full but one; the padding of that one is a row of zeros."""
    ids, tags = tagged()
    ids, tags = ids.copy(), tags.copy()
    ids[750, 9:], tags[750, 9:] = 0, 0
    model = Tagging()
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    batches = loader(ids, tags)

    def run(w: object) -> None:
        model.train()
        for _ in range(6):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=0).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
