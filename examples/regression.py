"""A regression whose loss falls and whose predictions are all the same.

sleuth examine examples/regression.py:training
sleuth names: loss-broadcasts
"""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def training():
    torch.manual_seed(0)
    x, y = load_diabetes(return_X_y=True)
    inputs = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    targets = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    # The model answers in shape (32, 1), the targets come in shape (32,): every answer meets every target.
    return {
        "model": model,
        "train": DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True),
        "loss": lambda output, target: ((output - target) ** 2).mean(),
        "optimizer": torch.optim.Adam(model.parameters(), lr=1e-3),
    }
