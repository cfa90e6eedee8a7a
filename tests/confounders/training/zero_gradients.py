"""Some parameters get a gradient at every step, and it is always exactly zero."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, Tagger, per_position
from tests.confounders.material import tagged
from tests.material import digits
from tests.zoo.data import loader


class BinaryCodes(nn.Module):
    """Rounds the code to zeros and ones; rounding is flat everywhere, and nothing lets the gradient past it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
        self.decoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(torch.round(torch.sigmoid(self.encoder(x))))


class Tempered(Attentive):
    """A learned temperature, kept between bounds that it starts outside of."""

    def __init__(self) -> None:
        super().__init__(features=8, length=8, outputs=10)
        self.log_temperature = nn.Parameter(torch.tensor([1.0]))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / self.log_temperature.clamp(-0.5, 0.5).exp()


class TwoHeads(Tagger):
    """Beside the tags, whether a token is even: a second task to keep the states honest."""

    def __init__(self) -> None:
        super().__init__(tags=3)
        self.side = nn.Linear(48, 2)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.gru(self.embedding(ids))
        return self.head(states), self.side(states)


def digits_rounded_to_bits() -> Loop:
    model = BinaryCodes()
    optimiser = optim.Adam(model.parameters(), lr=2e-3)
    batches = loader(digits()[0], batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(20):
            for (x,) in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), x).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def transformer_with_a_temperature_out_of_bounds() -> Loop:
    model = Tempered()
    optimiser = optim.AdamW(model.parameters(), lr=1e-3)
    x, y = digits()
    batches = loader(x.reshape(-1, 8, 8), y, batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for rows, labels in batches:
                loss = nn.functional.cross_entropy(model(rows), labels)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def second_task_weighed_with_nothing() -> Loop:
    """`1 // 4`: the side task was to count a quarter."""
    model = TwoHeads()
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    ids, tags = tagged()
    batches, share = loader(ids, tags - 1), 1 // 4

    def learn(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        scores, sides = model(x)
        losses = {"tags": per_position(scores, y), "side": per_position(sides, x % 2)}
        optimiser.zero_grad()
        (losses["tags"] + share * losses["side"]).backward()
        optimiser.step()
        return losses

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for x, y in batches:
                losses = learn(x, y)
            w.log(loss=losses["tags"].item(), side=losses["side"].item())

    return Loop(model, [optimiser], run)
