"""A learned scale made from a NumPy array is float64 and turns every output into float64."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, dtype: type) -> Subject:
    kit.require("torch")
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
            self.scale = nn.Parameter(torch.from_numpy(np.ones(10, dtype=dtype)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x) * self.scale

    model = Scaled()
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, np.float64)


def healthy(kit: Kit) -> Subject:
    return training(kit, np.float32)
