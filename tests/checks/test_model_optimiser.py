"""parameters-not-optimised: what the optimiser holds, and what it does not."""

import copy
from dataclasses import replace

import torch
from torch import nn

from sleuth.core.stage import Confidence
from tests.checks.looking import look, training
from tests.checks.test_model_wiring import WIRING, mlp
from tests.material import digits


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(64, 16), nn.Linear(16, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(torch.relu(self.encoder(x)))


def test_a_part_that_the_optimiser_was_not_given_is_named_with_the_doubt() -> None:
    model, x = Autoencoder(), digits()[0]
    subject = training(model, nn.MSELoss(), (x, x), torch.optim.Adam(model.encoder.parameters()))
    found = look(subject, "parameters-not-optimised").one()
    assert "all of decoder" in found.summary
    assert found.confidence is Confidence.LIKELY


def test_an_optimiser_of_an_older_copy_is_certain() -> None:
    model = mlp()
    optimiser = torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1)
    found = look(training(model, optimizer=optimiser), "parameters-not-optimised").one()
    assert "6 tensors that are no longer part of the model" in found.summary
    assert found.confidence is Confidence.CERTAIN


def test_tied_weights_groups_and_parameters_of_the_loss_are_fine() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
            self.second.weight = self.first.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(torch.relu(self.first(x)))

    model, x = Tied(), digits()[0]
    temperature = nn.Parameter(torch.ones(()))
    optimiser = torch.optim.Adam([{"params": model.parameters()}, {"params": [temperature], "lr": 1e-2}])
    subject = training(model, lambda out, y: ((out - y) ** 2).mean() * temperature**2, (x, x), optimiser)
    assert not look(subject, *WIRING).findings


def test_the_other_net_of_a_gan_may_have_an_optimiser_of_its_own() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.generator, self.critic = nn.Linear(8, 64), nn.Linear(64, 1)

    def step(model: Both, batch: list[torch.Tensor]) -> torch.Tensor:
        fake = model.generator(torch.randn(len(batch[0]), 8)).detach()
        return model.critic(fake).mean() - model.critic(batch[0]).mean()

    model = Both()
    subject = training(model, optimizer=torch.optim.Adam(model.critic.parameters()), step=step)
    assert not look(subject, *WIRING).findings


def test_without_an_optimiser_nothing_is_said_about_it() -> None:
    seen = look(replace(training(mlp()), optimizer=None), "parameters-not-optimised")
    assert not seen.findings
    assert "no optimiser" in seen.not_examined["parameters-not-optimised"]
