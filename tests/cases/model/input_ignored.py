"""A forward that builds its features from the shape of the input alone, against one that reads the input."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, ignore=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, ignore=False)


def _training(kit: Kit, ignore: bool) -> Subject:
    kit.require("torch")
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = kit.mlp(64, 64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if ignore:
                x = torch.ones_like(x)
            return self.body(x)

    model = Net()
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
