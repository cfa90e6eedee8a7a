"""A data set of 50,000 samples of which one breaks the step that meets it. Used by the tests, and loaded by `sleuth replay`."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, SICK, STRIKES_AT = 50_000, 31_337, 5_020


class Net(nn.Module):
    """Learns sums from logarithms: a value below zero, finite as it is, has none."""

    def __init__(self, logarithm: bool = True) -> None:
        super().__init__()
        self.logarithm = logarithm
        self.first, self.drop, self.last = nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.log(x) if self.logarithm else x
        return self.last(self.drop(torch.relu(self.first(x))))


def build() -> Net:
    return Net()


def build_without_logarithm() -> dict:
    return {"model": Net(logarithm=False), "loss": nn.functional.mse_loss}


def build_another() -> nn.Module:
    return nn.Linear(4, 1)


def data(value: float) -> TensorDataset:
    x = torch.rand(SAMPLES, 4, generator=torch.Generator().manual_seed(3)) + 0.5
    y = x.sum(1, keepdim=True)
    x[SICK, 2] = value
    return TensorDataset(x, y)


def loader(value: float, strikes_at: int = STRIKES_AT, **options) -> DataLoader:
    """Shuffled, with the sick sample in the batch `strikes_at`, at position 3."""
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(4)).tolist()
    order.remove(SICK)
    order.insert(strikes_at * 8 + 3, SICK)
    return DataLoader(data(value), 8, sampler=order[: (strikes_at + 40) * 8], **options)
