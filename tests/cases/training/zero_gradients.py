"""A code between two layers that is rounded to whole numbers, or that stays as it is."""

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, rounds: bool) -> Training:
    kit.require("torch")
    import torch
    from torch import nn

    class Coded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.code, self.leave = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(32, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            code = self.code(torch.tanh(self.enter(x)))
            return self.leave(torch.round(4 * code) / 4 if rounds else code)

    model = Coded()
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
    return Training(subject, steps=240, options={"every": 10})


def sick(kit: Kit) -> Training:
    return training(kit, rounds=True)


def healthy(kit: Kit) -> Training:
    return training(kit, rounds=False)
