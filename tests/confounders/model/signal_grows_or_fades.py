"""Layer by layer the activations grow or shrink, until little of the signal (or far too much) reaches the end."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import windows
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


class PlainResidual(nn.Module):
    """Each block adds two branches as strong as what it got; no norm ever takes that back."""

    def __init__(self, width: int = 16, blocks: int = 14) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.narrow = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(blocks)])
        self.wide = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(blocks)])
        for branch in (*self.narrow, *self.wide):
            nn.init.kaiming_normal_(branch.weight, nonlinearity="relu")
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(x)
        for narrow, wide in zip(self.narrow, self.wide, strict=True):
            h = h + narrow(torch.relu(h)) + wide(torch.relu(h))
        return self.head(h.mean(dim=(2, 3)))


class GatedUnit(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.value = nn.Conv1d(width, width, 3, padding=1, bias=False)
        self.gate = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.value(x) * torch.sigmoid(self.gate(x))


class GatedStack(nn.Module):
    """Ten gated convolutions without skips: each gate lets about half of a shrunken signal through."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 3, padding=1)
        self.units = nn.Sequential(*[GatedUnit(width) for _ in range(10)])
        self.leave = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(self.units(self.enter(x.transpose(1, 2)))[:, :, -1])


def deep_mlp_fading() -> Subject:
    layers: list[nn.Module] = [nn.Linear(64, 48), nn.ReLU()]
    for _ in range(20):
        layers += [nn.Linear(48, 48, bias=False), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(48, 10))
    train, validation = split_loaders(*digits())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def residual_net_growing() -> Subject:
    model = PlainResidual()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-3), validation)


def gated_convolutions_fading() -> Subject:
    model = GatedStack()
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=1e-3), validation)
