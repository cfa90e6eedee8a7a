"""How long an examination takes: the digits MLP, and a ResNet-18-sized CNN on 32×32 images.

Run: ./dev bench examine
"""

import sys
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import sleuth


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.skip = nn.Identity() if same else shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.skip(x))


def resnet18() -> nn.Module:
    """The usual variant for 32×32: 11 million parameters."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    width = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(width, outputs, stride), Block(outputs, outputs, 1)]
        width = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def digits(size: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Real digits; with a size, blown up to colour images."""
    x, y = load_digits(return_X_y=True)
    images = torch.tensor(x / 16, dtype=torch.float32)
    if size is not None:
        images = images.reshape(-1, 1, 8, 8).repeat(1, 3, 1, 1)
        images = nn.functional.interpolate(images, (size, size), mode="bilinear")
        images = (images - images.mean()) / images.std()
    return images, torch.tensor(y)


Tensors = tuple[torch.Tensor, torch.Tensor]


def measure(name: str, model: nn.Module, data: Tensors, optimiser: torch.optim.Optimizer, budget: float) -> None:
    order = np.random.default_rng(0).permutation(len(data[0]))
    train, validation = (TensorDataset(*(t[torch.as_tensor(rows)] for t in data)) for rows in (order[:1500], order[1500:]))
    loader = DataLoader(train, batch_size=32, shuffle=True)
    start = time.perf_counter()
    report = sleuth.examine(
        model,
        loader,
        loss=nn.CrossEntropyLoss(),
        optimizer=optimiser,
        validation=DataLoader(validation, batch_size=64),
        budget_seconds=budget,
        name=name,
        progress=False,
    )
    seconds = time.perf_counter() - start
    asked = len(report.stage_of)
    examined = asked - len(report.not_examined)
    print(f"{name}: {seconds:.1f} s (budget {budget:g} s), {report.status}, {examined} of {asked} checks examined")
    for reason in report.notes:
        print(f"  note: {reason}")
    for check, reason in report.not_examined.items():
        print(f"  – {check}: {reason}")
    for culprit in report.culprits:
        print(f"  ✗ {culprit.finding.name}: {culprit.finding.summary}")


def main() -> None:
    torch.manual_seed(0)
    which = sys.argv[1:] or ["mlp", "resnet"]
    if "mlp" in which:
        mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
        measure("digits MLP", mlp, digits(), torch.optim.Adam(mlp.parameters(), lr=1e-3), 60)
    if "resnet" in which:
        net = resnet18()
        optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
        measure("ResNet-18 on 32×32", net, digits(32), optimiser, 120)


if __name__ == "__main__":
    main()
