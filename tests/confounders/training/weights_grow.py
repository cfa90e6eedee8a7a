"""Nothing holds the weights: the loss always gains by making them larger."""

import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import mlp
from tests.material import digits, wine
from tests.zoo.data import loader


def critic_without_a_leash() -> Loop:
    """A Wasserstein critic whose weights are neither clipped nor penalised."""
    critic = nn.Sequential(nn.Linear(64, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
    optimiser = optim.Adam(critic.parameters(), lr=2e-3)
    batches = loader(digits()[0], batch_size=64)

    def run(w: object) -> None:
        for _ in range(20):
            for (real,) in batches:
                fake = torch.rand_like(real)
                optimiser.zero_grad()
                loss = critic(fake).mean() - critic(real).mean()
                loss.backward()
                optimiser.step()

    return Loop(critic, [optimiser], run)


def penalty_with_the_wrong_sign() -> Loop:
    """Weight decay written by hand, and subtracted."""
    model = mlp(64, 32, 10)
    optimiser = optim.SGD(model.parameters(), lr=0.05)
    batches = loader(*digits(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(20):
            for x, y in batches:
                optimiser.zero_grad()
                penalty = sum(p.square().sum() for p in model.parameters())
                loss = nn.functional.cross_entropy(model(x), y) - 0.05 * penalty
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def triplets_without_a_margin() -> Loop:
    """The distance to others minus the distance to one's like, without an end to it."""
    x, y = (torch.as_tensor(a) for a in wine())
    model = mlp(13, 32, 8, activation=nn.Tanh)
    optimiser = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)

    def other_than(rows: torch.Tensor, same: bool) -> torch.Tensor:
        fits = (y[rows][:, None] == y[None]) == same
        return torch.multinomial(fits.float(), 1)[:, 0]

    def run(w: object) -> None:
        for _ in range(500):
            rows = torch.randint(0, len(x), (64,))
            anchor, like, unlike = model(x[rows]), model(x[other_than(rows, True)]), model(x[other_than(rows, False)])
            optimiser.zero_grad()
            loss = ((anchor - like).norm(dim=1) - (anchor - unlike).norm(dim=1)).mean()
            loss.backward()
            optimiser.step()

    return Loop(model, [optimiser], run)
