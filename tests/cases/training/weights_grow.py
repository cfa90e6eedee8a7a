"""A penalty on large weights with the wrong sign, and with the right one."""

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, sign: float) -> Training:
    kit.require("torch")
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y = batch
        penalty = sum((p**2).sum() for p in model.parameters())
        return nn.functional.cross_entropy(model(x), y) + sign * 1e-2 * penalty

    subject = Subject(model, kit.loader(*digits()), step=step, optimizer=kit.optimiser(model, "sgd", lr=0.5))
    return Training(subject, steps=400, options={"every": 10})


def sick(kit: Kit) -> Training:
    return training(kit, sign=-1.0)


def healthy(kit: Kit) -> Training:
    return training(kit, sign=0.1)
