"""Dropout still drops and batch-norm still counts while the model is being validated."""

import copy

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, ResidualNet
from tests.confounders.material import facts, waves
from tests.material import digit_images
from tests.zoo.data import split_loaders


def residual_net_without_a_word_about_modes() -> Loop:
    model = ResidualNet(width=8, blocks=1)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    train, validation = split_loaders(*digit_images(), batch_size=64)
    criterion = nn.CrossEntropyLoss()

    def run(w: object) -> None:
        for _ in range(14):
            for images, labels in train:
                optimiser.zero_grad()
                criterion(model(images), labels).backward()
                optimiser.step()
            with torch.no_grad():
                losses = [criterion(model(images), labels).item() for images, labels in validation]
            w.log(val_loss=sum(losses) / len(losses))

    return Loop(model, [optimiser], run)


class Fitting:
    """Puts the averaged copy into eval, and asks the model itself."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.average = model, copy.deepcopy(model).requires_grad_(False)
        self.optimiser = optim.AdamW(model.parameters(), lr=1e-3)

    def train_epoch(self, batches: object) -> None:
        self.model.train()
        for x, y in batches:
            self.optimiser.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimiser.step()
            self.follow()

    @torch.no_grad()
    def follow(self) -> None:
        for mine, its in zip(self.average.parameters(), self.model.parameters(), strict=True):
            mine.lerp_(its, 0.05)

    @torch.inference_mode()
    def validate(self, batches: object) -> float:
        self.average.eval()
        right = [(self.model(x).argmax(1) == y).float() for x, y in batches]
        return torch.cat(right).mean().item()


def transformer_whose_copy_was_set_to_eval() -> Loop:
    x, y = waves()
    train, validation = split_loaders(x.reshape(-1, 6, 4), y)
    fitting = Fitting(Attentive(features=4, length=6, outputs=3, dropout=0.1))

    def run(w: object) -> None:
        for _ in range(15):
            fitting.train_epoch(train)
            w.log(val_accuracy=fitting.validate(validation))

    return Loop(fitting.model, [fitting.optimiser], run)


def facts_checked_every_forty_steps() -> Loop:
    """The mode is set once at the top; the validation in the middle of an epoch never touches it."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train, validation = split_loaders(*facts())
    criterion = nn.BCEWithLogitsLoss()

    def check() -> float:
        with torch.no_grad():
            return torch.stack([criterion(model(x), told) for x, told in validation]).mean().item()

    def steps() -> object:
        for _ in range(24):
            yield from train

    def learn(x: Tensor, told: Tensor) -> None:
        optimiser.zero_grad()
        criterion(model(x), told).backward()
        optimiser.step()

    def run(w: object) -> None:
        model.train()
        for number, (x, told) in enumerate(steps(), start=1):
            learn(x, told)
            if number % 40 == 0:
                w.log(val_loss=check())

    return Loop(model, [optimiser], run)
