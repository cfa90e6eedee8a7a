"""A small network that should learn to read digits, and hardly does. Nothing crashes, nothing warns: why?

python digits.py                      the training itself: watch the loss
sleuth examine digits.py:training     the diagnosis
"""

from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    """Images of 8 × 8 pixels in, ten probabilities out."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores = self.head(self.body(images))
        return torch.softmax(scores, dim=1)


def training() -> dict[str, Any]:
    """The parts of the training, under the names that sleuth.examine() takes."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # so small a network is fastest on one
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels))
    train, validation = order[:1500], order[1500:]
    model = Reader()
    return {
        "model": model,
        "train": DataLoader(TensorDataset(images[train], labels[train]), batch_size=32, shuffle=True),
        "validation": DataLoader(TensorDataset(images[validation], labels[validation]), batch_size=32),
        "loss": nn.CrossEntropyLoss(),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
    }


def main(epochs: int = 10) -> None:
    parts = training()
    model, loss, optimizer = parts["model"], parts["loss"], parts["optimizer"]
    for epoch in range(epochs):
        total = 0.0
        for images, labels in parts["train"]:
            optimizer.zero_grad()
            error = loss(model(images), labels)
            error.backward()
            optimizer.step()
            total += error.item()
        print(f"epoch {epoch + 1:2}: loss {total / len(parts['train']):.3f}")


if __name__ == "__main__":
    main()
