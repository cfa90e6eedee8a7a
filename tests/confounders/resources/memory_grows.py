"""Something is kept from every step, without a graph and without an end."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import cnn, mlp
from tests.confounders.material import plane
from tests.material import digit_images, digits
from tests.zoo.data import loader


class Recorder:
    """Every input and every output, in case somebody wants to look at them."""

    def __init__(self) -> None:
        self.kept: list[tuple[Tensor, Tensor]] = []

    def __call__(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        self.kept.append((inputs[0].detach().clone(), output.detach().clone()))


def cnn_whose_feature_maps_are_recorded() -> Loop:
    model = cnn()
    optimiser = optim.Adam(model.parameters(), lr=2e-3)
    batches = loader(*digit_images(), batch_size=128)

    def run(w: object) -> None:
        recorder = Recorder()
        hook = model[3].register_forward_hook(recorder)
        for _ in range(16):
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
        hook.remove()

    return Loop(model, [optimiser], run)


def autoencoder_with_a_checkpoint_of_every_step() -> Loop:
    """Early stopping keeps all states so that it can go back to any of them."""
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
    optimiser = optim.AdamW(model.parameters(), lr=1e-3)
    batches = loader(digits()[0], batch_size=64)

    def run(w: object) -> None:
        states = []
        for _ in range(14):
            for (x,) in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), x).backward()
                optimiser.step()
                states.append({name: value.clone() for name, value in model.state_dict().items()})

    return Loop(model, [optimiser], run)


class Replay:
    """A memory of past samples that is only ever filled."""

    def __init__(self) -> None:
        self.rows: list[Tensor] = []

    def add(self, x: Tensor, y: Tensor) -> None:
        noisy = x.repeat(256, 1) + 0.01 * torch.randn(256 * len(x), x.shape[1])
        self.rows.append(torch.cat([noisy, y.repeat(256, 1)], dim=1))


def regression_with_a_replay_that_is_never_emptied() -> Loop:
    model = mlp(12, 48, 3)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(*plane())

    def run(w: object) -> None:
        replay = Replay()
        for _ in range(14):
            for x, y in batches:
                replay.add(x, y)
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
