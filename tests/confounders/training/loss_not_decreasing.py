"""Everything moves, and nothing is learned: the loss stays where guessing would put it."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Factors, Recurrent, cnn
from tests.confounders.material import ratings, waves
from tests.material import digit_images
from tests.zoo.data import loader


def cnn_with_half_a_mixup() -> Loop:
    """The labels are mixed with those of the shuffled batch, and nothing but the shuffled ones is kept; the images stay."""
    model = cnn()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for images, labels in batches:
                labels = labels[torch.randperm(len(labels))]
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def renumbered(pairs: list[np.ndarray]) -> Tensor:
    """Ids in the order in which they come up, counted anew for every batch."""
    columns = []
    for column in np.stack(pairs).T:
        seen = {name: number for number, name in enumerate(dict.fromkeys(column))}
        columns.append([seen[name] for name in column])
    return torch.tensor(columns).t()


def ratings_with_ids_by_batch() -> Loop:
    """A collate function that turns names into numbers and forgets them when the batch is done."""
    pairs, stars = ratings()
    rng = np.random.default_rng(0)
    model = Factors()
    optimiser = optim.Adam(model.parameters(), lr=2e-3)

    def batches(count: int) -> object:
        for _ in range(count):
            rows = rng.choice(len(pairs), 24, replace=False)
            yield renumbered([pairs[row] for row in rows]), torch.as_tensor(stars[rows])

    def run(w: object) -> None:
        model.train()
        for ids, target in batches(700):
            loss = nn.functional.mse_loss(model(ids), target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return Loop(model, [optimiser], run)


def lstm_fed_with_whatever_was_drawn() -> Loop:
    """Signals and their kinds come from two samplers, each with its own order."""
    x, y = (torch.as_tensor(a) for a in waves())
    model = Recurrent(1, 3)
    optimiser = optim.AdamW(model.parameters(), lr=2e-3)

    def learn(signal: Tensor, kind: Tensor) -> Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(signal), kind)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return loss.detach()

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            signals, kinds = torch.randperm(len(x)).split(32), torch.randperm(len(y)).split(32)
            losses = [learn(x[a], y[b]) for a, b in zip(signals, kinds, strict=True)]
            w.log(loss=torch.stack(losses).mean().item())

    return Loop(model, [optimiser], run)
