"""The training is well; the number that is printed about it is not what it says."""

import torch
from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, mlp
from tests.confounders.material import windows
from tests.material import cancer, digits
from tests.zoo.data import split_loaders


def digits_whose_hits_are_never_set_back() -> Loop:
    """The count of right answers goes on over the epochs and is divided by one epoch's samples."""
    model = mlp(64, 48, 10)
    optimiser = optim.Adam(model.parameters(), lr=2e-3)
    train, validation = split_loaders(*digits(), batch_size=64)

    def run(w: object) -> None:
        right = 0
        for _ in range(14):
            model.train()
            for x, y in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                for x, y in validation:
                    right += (model(x).argmax(1) == y).sum().item()
            w.log(val_accuracy=right / len(validation.dataset))

    return Loop(model, [optimiser], run)


class Trial:
    """One logit a patient; the evaluation was copied from a net with two."""

    def __init__(self) -> None:
        self.model = mlp(30, 24, 1)
        self.optimiser = optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.criterion = nn.BCEWithLogitsLoss()

    def train(self, batches: object) -> None:
        self.model.train()
        for x, y in batches:
            self.optimiser.zero_grad()
            self.criterion(self.model(x), y.float()[:, None]).backward()
            self.optimiser.step()

    @torch.no_grad()
    def accuracy(self, batches: object) -> float:
        self.model.eval()
        told = [(self.model(x).argmax(dim=1) == y).float() for x, y in batches]
        return torch.cat(told).mean().item()


def cancer_whose_one_column_is_searched_for_its_largest() -> Loop:
    trial = Trial()
    train, validation = split_loaders(*cancer())

    def run(w: object) -> None:
        for _ in range(15):
            trial.train(train)
            w.log(val_accuracy=trial.accuracy(validation))

    return Loop(trial.model, [trial.optimiser], run)


def windows_whose_loss_is_summed_from_the_first_day() -> Loop:
    """The running loss was made outside the loop over the epochs."""
    model = Recurrent(1, 1, width=24)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    train, validation = split_loaders(*windows())
    criterion = nn.MSELoss()

    def run(w: object) -> None:
        running_loss, val_loss = 0.0, 0.0
        for _ in range(12):
            for x, y in train:
                optimiser.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimiser.step()
                running_loss += loss.item()
            with torch.no_grad():
                for x, y in validation:
                    val_loss += criterion(model(x), y).item()
            w.log(loss=running_loss / len(train), val_loss=val_loss / len(validation))

    return Loop(model, [optimiser], run)
