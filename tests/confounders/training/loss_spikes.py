"""The training goes well, but now and then one batch makes the loss jump: something in it does not belong there."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import ResidualNet, Tagger, mlp, per_position
from tests.confounders.material import TOKENS, friedman, tagged
from tests.material import digit_images
from tests.zoo.data import loader


def regression_with_two_readings_gone_wrong() -> Loop:
    """The sensor wrote its overflow value twice."""
    x, y = friedman(2400)
    y = y.copy()
    y[[113, 1498]] = [[40.0], [-35.0]]
    model = mlp(10, 48, 1)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    batches = loader(x, y)

    def run(w: object) -> None:
        model.train()
        for _ in range(12):
            for rows, target in batches:
                optimiser.zero_grad()
                nn.functional.mse_loss(model(rows), target).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()

    return Loop(model, [optimiser], run)


def digits_with_one_file_mixed_up() -> Loop:
    """Batches were packed into files beforehand; in one file of thirty the labels are those of another."""
    images, labels = digit_images()
    order = np.random.default_rng(0).permutation(len(images))[:1740].reshape(30, 58)
    packed = [(torch.as_tensor(images[rows]), torch.as_tensor(labels[rows])) for rows in order]
    packed[11] = (packed[11][0], packed[11][1].roll(7))
    model = ResidualNet(width=8, blocks=1)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def epoch() -> float:
        total = 0.0
        for number in torch.randperm(len(packed)):
            x, y = packed[number]
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimiser.step()
            total += loss.item()
        return total / len(packed)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            w.log(loss=epoch())

    return Loop(model, [optimiser], run)


def tagger_with_a_damaged_shard() -> Loop:
    """One shard was read with another table of tokens."""
    ids, tags = tagged()
    batches = loader(ids, tags - 1)
    damage = torch.as_tensor(np.random.default_rng(3).permutation(TOKENS))
    model = Tagger(tags=3)
    optimiser = optim.AdamW(model.parameters(), lr=5e-3)

    def stream() -> object:
        for epoch in range(16):
            for number, (x, y) in enumerate(batches):
                bad = epoch % 4 == 2 and number == 9
                yield damage[x] if bad else x, y

    def fit(x: Tensor, y: Tensor) -> float:
        loss = per_position(model(x), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return loss.item()

    def run(w: object) -> None:
        model.train()
        for x, y in stream():
            fit(x, y)

    return Loop(model, [optimiser], run)
