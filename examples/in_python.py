"""sleuth inside a script of your own: ask before the long training starts.

python examples/in_python.py
sleuth names: unregistered-layers
"""

import torch
from sklearn.datasets import load_wine
from torch import nn

import sleuth


class Classifier(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Linear(13, width)
        # A plain list hides its layers from .parameters(): the optimiser will never train them.
        self.hidden = [nn.Linear(width, width), nn.Linear(width, width)]
        self.last = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.last(x)


def training():
    torch.manual_seed(0)
    x, y = load_wine(return_X_y=True)
    inputs = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    model = Classifier()
    return {
        "model": model,
        "train": (inputs, torch.tensor(y)),
        "loss": nn.CrossEntropyLoss(),
        "optimizer": torch.optim.Adam(model.parameters(), lr=1e-3),
    }


if __name__ == "__main__":
    report = sleuth.examine(**training(), budget_seconds=30)
    report.show()
    if report.status == "sick":
        print("\nNot trained: first see to", report.culprits[0].finding.name)
