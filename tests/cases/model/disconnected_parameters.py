"""Features that are detached before the head, so that only the head learns, against features that are not."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, cut=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, cut=False)


def _training(kit: Kit, cut: bool) -> Subject:
    kit.require("torch")
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = kit.mlp(64, 64, 32)
            self.head = kit.linear(32, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = torch.relu(self.features(x))
            if cut:
                features = features.detach()
            return self.head(features)

    model = Net()
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
