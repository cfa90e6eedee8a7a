"""Numbers of sixteen bits that are too small, or too large, for what is computed in them."""

import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import windows
from tests.material import digit_images, digits
from tests.zoo.data import loader


def half_precision_autoencoder() -> Loop:
    """All in float16: the gradient of a mean over thousands of pixels vanishes below its smallest number."""
    model = mlp(64, 48, 48, 64).half()
    optimiser = optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    batches = loader(digits()[0], batch_size=128)

    def run(w: object) -> None:
        for _ in range(20):
            for (x,) in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x.half()), x.half() * 0.05).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def autocast_cnn_without_a_scaler() -> Loop:
    """float16 under autocast, a loss that is averaged over many parts, and no scaler to lift it."""
    model = cnn()
    optimiser = optim.Adam(model.parameters(), lr=2e-3, eps=1e-12)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(5):
            for images, labels in batches:
                optimiser.zero_grad()
                with torch.autocast("cpu", dtype=torch.float16):
                    scores = model(images)
                    loss = nn.functional.cross_entropy(scores, labels) / 4096
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class Squared(nn.Module):
    """Energies of a signal: squares that leave the range of float16."""

    def __init__(self) -> None:
        super().__init__()
        self.read = Recurrent(1, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        energy = (self.read(x) * 300).square()
        return self.head((energy + 1).log2() * 0.05)


def half_precision_energies() -> Loop:
    x, y = windows()
    model = Squared().half()
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    batches = loader(x, y)

    def run(w: object) -> None:
        for _ in range(8):
            for signal, following in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(signal.half()), following.half()).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
