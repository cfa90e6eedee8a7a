"""Every epoch begins with a new optimiser that knows nothing of the steps before."""

from collections.abc import Iterable

from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import LetterModel, cnn, mlp, per_position
from tests.confounders.material import letters, plane
from tests.material import digit_images
from tests.zoo.data import loader


def cnn_whose_epoch_makes_its_own_adam() -> Loop:
    model = cnn()
    first = optim.Adam(model.parameters(), lr=2e-3)
    batches = loader(*digit_images(), batch_size=64)

    def epoch(optimiser: optim.Optimizer) -> None:
        model.train()
        for images, labels in batches:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimiser.step()

    def run(w: object) -> None:
        epoch(first)
        for _ in range(11):
            epoch(optim.Adam(model.parameters(), lr=2e-3))

    return Loop(model, [first], run)


def letters_whose_rate_is_lowered_by_a_new_optimiser() -> Loop:
    """Instead of writing to its groups, the author makes another one with the lower rate."""
    x, y = letters()
    model = LetterModel()
    optimiser = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    batches = loader(x, y, batch_size=64)

    def run(w: object) -> None:
        mine, rate = optimiser, 0.2
        for _ in range(8):
            for ids, following in batches:
                mine.zero_grad()
                per_position(model(ids), following).backward()
                mine.step()
            rate *= 0.8
            mine = optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    return Loop(model, [optimiser], run)


class Regressor:
    """`fit` was written to be called once."""

    def __init__(self) -> None:
        self.model = mlp(12, 32, 3, activation=nn.Tanh)
        self.optimiser = self.configure()

    def configure(self) -> optim.Optimizer:
        return optim.AdamW(self.model.parameters(), lr=5e-3, weight_decay=1e-3)

    def fit(self, batches: Iterable) -> float:
        losses = []
        for x, y in batches:
            self.optimiser.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimiser.step()
            losses.append(loss.item())
        self.optimiser = self.configure()
        return sum(losses) / len(losses)


def regressor_fitted_again_and_again() -> Loop:
    regressor = Regressor()
    batches = loader(*plane())

    def run(w: object) -> None:
        for _ in range(16):
            w.log(loss=regressor.fit(batches))

    return Loop(regressor.model, [regressor.optimiser], run)
