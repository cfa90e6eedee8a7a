"""Some parameters have another precision than the rest."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Attentive, cnn
from tests.confounders.material import friedman
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


class BasisRegression(nn.Module):
    """The centres came from NumPy, which thinks in double precision."""

    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.from_numpy(np.random.default_rng(0).normal(size=(48, 10))))
        self.width = nn.Parameter(torch.tensor(np.float64(0.1)))
        self.head = nn.Linear(48, 1)

    def forward(self, x: Tensor) -> Tensor:
        distance = (x.unsqueeze(1) - self.centres).pow(2).sum(-1)
        return self.head(torch.exp(-self.width * distance).float())


class HalfTrunk(nn.Module):
    """Half of the network was made smaller for speed, the other half was not."""

    def __init__(self) -> None:
        super().__init__()
        body = cnn()
        self.trunk = body[:-1].to(torch.bfloat16)
        self.head = body[-1]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trunk(x.bfloat16()).float())


class DoubleHead(Attentive):
    def __init__(self) -> None:
        super().__init__(features=8, length=8, outputs=10)
        self.head = self.head.double()

    def forward(self, x: Tensor) -> Tensor:
        h = self.encoder(self.embed(x) + self.positions)
        return self.head(self.norm(h).mean(1).double())


def regression_with_centres_from_numpy() -> Subject:
    model = BasisRegression()
    train, validation = split_loaders(*friedman())
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=1e-2), validation)


def cnn_half_in_bfloat16() -> Subject:
    model = HalfTrunk()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def transformer_with_a_double_head() -> Subject:
    model = DoubleHead()
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=1e-3), validation)
