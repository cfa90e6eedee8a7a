"""Two players: neither loss has to fall, and each backward leaves gradients with the other."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.material import moons
from tests.material import digits
from tests.zoo.data import loader

bce = nn.functional.binary_cross_entropy_with_logits


def players(data: int, noise: int) -> nn.ModuleDict:
    generator = nn.Sequential(nn.Linear(noise, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, data))
    critic = nn.Sequential(nn.Linear(data, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    return nn.ModuleDict({"generator": generator, "critic": critic})


def optimisers(model: nn.ModuleDict, lr: float, betas: tuple[float, float]) -> list[optim.Optimizer]:
    return [optim.Adam(model[player].parameters(), lr=lr, betas=betas) for player in ("critic", "generator")]


def gan_with_detached_fakes() -> Loop:
    model = players(64, 16)
    of_critic, of_generator = both = optimisers(model, 2e-4, (0.5, 0.999))
    batches = loader(digits()[0] * 2 - 1, batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for (real,) in batches:
                ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
                fake = model["generator"](torch.randn(len(real), 16))
                of_critic.zero_grad()
                loss = bce(model["critic"](real), ones) + bce(model["critic"](fake.detach()), zeros)
                loss.backward()
                of_critic.step()
                of_generator.zero_grad()
                bce(model["critic"](fake), ones).backward()
                of_generator.step()

    return Loop(model, both, run)


def gan_whose_fakes_keep_their_graph() -> Loop:
    """The critic's backward runs on into the generator; what it leaves there is cleared before it is used."""
    model = players(2, 8)
    of_critic, of_generator = both = optimisers(model, 1e-3, (0.5, 0.9))
    batches = loader(moons()[0], batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(30):
            for (real,) in batches:
                ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
                of_critic.zero_grad()
                fake = model["generator"](torch.randn(len(real), 8))
                (bce(model["critic"](real), 0.9 * ones) + bce(model["critic"](fake), zeros)).backward()
                of_critic.step()
                of_generator.zero_grad()
                fake = model["generator"](torch.randn(len(real), 8))
                bce(model["critic"](fake), ones).backward()
                of_generator.step()

    return Loop(model, both, run)


def penalty(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    between = torch.lerp(fake, real, torch.rand(len(real), 1)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def critic_with_a_gradient_penalty() -> Loop:
    """Four steps of the critic for one of the generator; its loss is below zero and climbs as the generator gets better."""
    model = players(2, 8)
    of_critic, of_generator = both = optimisers(model, 5e-4, (0.0, 0.9))
    batches = loader(moons()[0], batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(40):
            for number, (real,) in enumerate(batches):
                fake = model["generator"](torch.randn(len(real), 8)).detach()
                gap = model["critic"](fake).mean() - model["critic"](real).mean()
                of_critic.zero_grad()
                (gap + 10 * penalty(model["critic"], real, fake)).backward()
                of_critic.step()
                if number % 4 == 3:
                    of_generator.zero_grad()
                    (-model["critic"](model["generator"](torch.randn(64, 8))).mean()).backward()
                    of_generator.step()

    return Loop(model, both, run)
