"""A hand-written batch normalisation that forgets to keep its running statistics, against one that keeps them."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, keeps=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, keeps=True)


def _training(kit: Kit, keeps: bool) -> Subject:
    kit.require("torch")
    import torch

    class Normalise(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("variance", torch.ones(width))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mean, variance = self.mean, self.variance
            if self.training:
                mean, variance = x.mean(0), x.var(0)
                if keeps:
                    self.mean.lerp_(mean.detach(), 0.1)
                    self.variance.lerp_(variance.detach(), 0.1)
            return (x - mean) / (variance + 1e-5).sqrt()

    blocks = [(kit.linear(inputs, 48), Normalise(48), kit.activation("relu")) for inputs in (64, 48)]
    model = kit.sequential(*blocks[0], *blocks[1], kit.linear(48, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
