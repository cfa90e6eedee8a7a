"""Gradients that are added up, cut short, disturbed or thinned out on purpose."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Factors, Tagger, cnn, mlp, per_position
from tests.confounders.material import colours, plane, ratings, tagged, waves
from tests.zoo.data import loader


def accumulation_scaled_as_it_should_be() -> Loop:
    """Four parts make a step, also where an epoch ends with fewer."""
    model = cnn(channels=3)
    batches = loader(*colours(), batch_size=16)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    parts = 4

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for number, (images, labels) in enumerate(batches, start=1):
                (nn.functional.cross_entropy(model(images), labels) / parts).backward()
                if number % parts == 0 or number == len(batches):
                    optimiser.step()
                    optimiser.zero_grad()

    return Loop(model, [optimiser], run)


def tagger_clipped_at_every_step() -> Loop:
    """The limit is so low that no step goes unclipped, and the rate makes up for it."""
    model = Tagger(tags=3)
    ids, tags = tagged()
    batches = loader(ids, tags - 1)
    optimiser = optim.SGD(model.parameters(), lr=2.0, momentum=0.9)
    norms: list[float] = []

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for x, y in batches:
                optimiser.zero_grad()
                per_position(model(x), y).backward()
                norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.05).item())
                optimiser.step()

    return Loop(model, [optimiser], run)


def gradients_with_noise_added() -> Loop:
    """Annealed noise on every gradient, as for very deep nets."""
    model = mlp(12, 48, 3, activation=nn.Tanh)
    batches = loader(*plane(), batch_size=32)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def run(w: object) -> None:
        model.train()
        step = 0
        for _ in range(24):
            for x, y in batches:
                step += 1
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                for parameter in model.parameters():
                    parameter.grad.add_(torch.randn_like(parameter.grad), alpha=0.05 / (1 + step) ** 0.55)
                optimiser.step()

    return Loop(model, [optimiser], run)


class TwoTasks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.GRU(1, 32, batch_first=True)
        self.kind, self.energy = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        state = self.trunk(x)[0][:, -1]
        return self.kind(state), self.energy(state).squeeze(1)


def two_tasks_with_a_backward_each() -> Loop:
    """The first backward keeps the graph for the second; both add to the gradients of the trunk, and one step uses them."""
    model = TwoTasks()
    x, y = waves()
    energy = (x[:, 12:, 0] ** 2).mean(1)
    batches = loader(x, y, (energy - energy.mean()) / energy.std())
    optimiser = optim.Adam(model.parameters(), lr=5e-3)

    def run(w: object) -> None:
        model.train()
        for _ in range(12):
            for signal, kind, strength in batches:
                scores, guess = model(signal)
                optimiser.zero_grad()
                nn.functional.cross_entropy(scores, kind).backward(retain_graph=True)
                (0.3 * nn.functional.mse_loss(guess, strength)).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 2.0)
                optimiser.step()

    return Loop(model, [optimiser], run)


class SparseFactors(Factors):
    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(50, 8, sparse=True)
        self.items = nn.Embedding(40, 8, sparse=True)


def ratings_with_sparse_gradients() -> Loop:
    """Rows that are not in the batch have no gradient; two optimisers share one backward."""
    model = SparseFactors()
    of_rows = optim.SparseAdam([*model.users.parameters(), *model.items.parameters()], lr=5e-3)
    of_body = optim.Adam(model.body.parameters(), lr=5e-3)
    batches = loader(*ratings())

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for pairs, stars in batches:
                of_rows.zero_grad()
                of_body.zero_grad()
                nn.functional.mse_loss(model(pairs), stars).backward()
                of_rows.step()
                of_body.step()

    return Loop(model, [of_rows, of_body], run)
