"""A model in float16 under Adam, whose squares of gradients vanish there; and in float32, computing in bfloat16."""

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, narrow: bool) -> Training:
    kit.require("torch")
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    if narrow:
        model.half()

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y = batch
        if narrow:
            return nn.functional.cross_entropy(model(x.half()), y)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return nn.functional.cross_entropy(model(x), y)

    subject = Subject(model, kit.loader(*digits()), step=step, optimizer=kit.optimiser(model, "adam", lr=3e-3))
    return Training(subject, steps=400, options={"every": 10})


def sick(kit: Kit) -> Training:
    return training(kit, narrow=True)


def healthy(kit: Kit) -> Training:
    return training(kit, narrow=False)
