"""Hidden layers in a plain Python list, of which the optimiser never hears, against the same in a ModuleList."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, registered=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, registered=True)


def _training(kit: Kit, registered: bool) -> Subject:
    kit.require("torch")
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [kit.linear(64, 64), kit.linear(64, 64)]
            self.hidden = torch.nn.ModuleList(layers) if registered else layers
            self.head = kit.linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.hidden:
                x = torch.relu(layer(x))
            return self.head(x)

    model = Net()
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
