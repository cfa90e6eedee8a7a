"""Units that were alive at the start fall silent one after the other, and do not come back."""

import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import cnn, mlp
from tests.confounders.material import plane
from tests.material import digit_images, digits
from tests.zoo.data import loader


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.act, self.decode = nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.act(self.encode(x))
        return self.decode(code), code


def sparse_code_that_is_paid_too_well() -> Loop:
    """A sparse autoencoder whose penalty on activity outweighs what activity is good for."""
    model = Sparse()
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    batches = loader(digits()[0], batch_size=64)

    def run(w: object) -> None:
        for _ in range(14):
            for (x,) in batches:
                optimiser.zero_grad()
                rebuilt, code = model(x)
                loss = nn.functional.mse_loss(rebuilt, x) + 0.4 * code.abs().mean()
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def cnn_whose_filters_are_knocked_out() -> Loop:
    """A rate that the head can bear and the filters cannot."""
    model = cnn()
    groups = [{"params": model[:6].parameters(), "lr": 0.05}, {"params": model[6:].parameters(), "lr": 2e-3}]
    optimiser = optim.Adam(groups, lr=2e-3)
    batches = loader(*digit_images(), batch_size=32)

    def run(w: object) -> None:
        model.train()
        for _ in range(8):
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def regression_whose_biases_sink() -> Loop:
    """A line that was to centre the biases takes a little off each of them after every step."""
    model = mlp(12, 64, 64, 3)
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    batches = loader(*plane())

    def run(w: object) -> None:
        for _ in range(16):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimiser.step()
                with torch.no_grad():
                    for layer in (model[0], model[2]):
                        layer.bias -= 0.006

    return Loop(model, [optimiser], run)
