"""Steps are taken, in the right direction, and each is a hundred-thousandth of the weights or less."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, Recurrent, ResidualNet
from tests.confounders.material import waves, windows
from tests.material import digit_images
from tests.zoo.data import loader


def residual_net_clipped_to_almost_nothing() -> Loop:
    """The number is that of the weight decay: the norm of all gradients is cut to a hundred-thousandth."""
    model = ResidualNet(width=8, blocks=1)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(10):
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e-5)
                optimiser.step()

    return Loop(model, [optimiser], run)


class Scaled:
    """Divides the gradients by the loss scale before each step; the line that multiplied the loss is gone."""

    def __init__(self, model: nn.Module, scale: float = 2.0**16) -> None:
        self.model, self.scale = model, scale
        self.optimiser = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @torch.no_grad()
    def unscale(self) -> None:
        for parameter in self.model.parameters():
            parameter.grad.div_(self.scale)

    def fit(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimiser.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.unscale()
        self.optimiser.step()
        return loss.detach()


def forecast_unscaled_and_never_scaled() -> Loop:
    scaled = Scaled(Recurrent(1, 1))
    batches = loader(*windows())

    def run(w: object) -> None:
        scaled.model.train()
        for _ in range(16):
            losses = [scaled.fit(x, y) for x, y in batches]
            w.log(loss=torch.stack(losses).mean().item())

    return Loop(scaled.model, [scaled.optimiser], run)


def transformer_with_a_rate_for_each_depth() -> Loop:
    """A rate for each depth, a hundredth of the one above; nothing here was trained before, so nothing ought to be spared."""
    model = Attentive(features=4, length=6, outputs=3)
    x, y = waves()
    batches = loader(x.reshape(-1, 6, 4), y)
    above = [nn.ModuleList([model.head, model.norm]), *reversed(model.encoder.layers), model.embed]
    groups = [{"params": part.parameters(), "lr": 1e-2 / 100**depth} for depth, part in enumerate(above)]
    groups.append({"params": [model.positions], "lr": 1e-2})
    optimiser = optim.Adam(groups)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for signal, kind in batches:
                loss = nn.functional.cross_entropy(model(signal), kind)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
