"""A shift that is added in place to what sigmoid still needs for its gradient; added to a new tensor it is fine."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, in_place=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, in_place=False)


def _training(kit: Kit, in_place: bool) -> Subject:
    kit.require("torch")
    import torch

    class Centred(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.sigmoid(x)
            if in_place:
                y -= 0.5
                return y
            return y - 0.5

    model = kit.sequential(kit.linear(64, 64), Centred(), kit.linear(64, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
