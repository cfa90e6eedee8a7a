"""Weights and activations in bfloat16."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from tests.material import digits


def build() -> Subject:
    x, y = digits()
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10)).bfloat16()
    data = TensorDataset(torch.as_tensor(x).bfloat16(), torch.as_tensor(y))
    train = DataLoader(data, batch_size=32, shuffle=True)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3))
