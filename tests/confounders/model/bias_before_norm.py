"""A bias is added, and the normalisation that follows subtracts it again."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import waves
from tests.material import cancer, digit_images
from tests.zoo.data import split_loaders


class BasicBlock(nn.Module):
    """Norms named before the convolutions they follow."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(h)))


class SmallResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.layer1 = BasicBlock(16)
        self.layer2 = BasicBlock(16)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer2(self.layer1(self.stem(x)))
        return self.head(nn.functional.adaptive_avg_pool2d(h, 2).flatten(1))


class WaveConv(nn.Module):
    """Instance norm takes away each channel's mean, and the bias with it."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2), nn.InstanceNorm1d(16), nn.ReLU(), nn.Conv1d(16, 16, 5, padding=2), nn.ReLU()
        )
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x.transpose(1, 2)).mean(-1))


def residual_net() -> Subject:
    model = SmallResNet()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def table_with_batch_norm() -> Subject:
    model = nn.Sequential(
        nn.Linear(30, 32), nn.BatchNorm1d(32), nn.GELU(), nn.Linear(32, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 1)
    )
    x, y = cancer()
    train, validation = split_loaders(x, y[:, None].astype("float32"))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)


def convolutions_over_time_with_instance_norm() -> Subject:
    model = WaveConv()
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)
