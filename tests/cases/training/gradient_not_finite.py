"""A penalty on the length of a shift that starts at zero: a root written by hand, and the library's norm."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, by_hand: bool) -> Subject:
    kit.require("torch")
    import torch
    from torch import nn

    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
            self.shift = nn.Parameter(torch.zeros(10))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x) + self.shift

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y = batch
        length = torch.sqrt((model.shift**2).sum()) if by_hand else torch.linalg.norm(model.shift)
        return nn.functional.cross_entropy(model(x), y) + 1e-3 * length

    model = Shifted()
    return Subject(model, kit.loader(*digits()), step=step, optimizer=kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, by_hand=True)


def healthy(kit: Kit) -> Subject:
    return training(kit, by_hand=False)
