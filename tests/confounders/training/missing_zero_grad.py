"""Each step also takes the gradients of the steps before it: nobody clears them."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Tagger, cnn, per_position
from tests.confounders.material import tagged
from tests.material import digit_images, digits
from tests.zoo.data import loader


class Trainer:
    """Clears the gradients when an epoch begins, and not again until the next."""

    def __init__(self, model: nn.Module, optimiser: optim.Optimizer) -> None:
        self.model, self.optimiser = model, optimiser
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self, batches: object) -> float:
        self.model.train()
        self.optimiser.zero_grad()
        total = 0.0
        for images, labels in batches:
            loss = self.criterion(self.model(images), labels)
            loss.backward()
            self.optimiser.step()
            total += loss.item()
        return total


def tagger_whose_call_lacks_its_brackets() -> Loop:
    ids, tags = tagged()
    model = Tagger(tags=3)
    optimiser = optim.SGD(model.parameters(), lr=0.5)
    batches = loader(ids, tags - 1)

    def run(w: object) -> None:
        model.train()
        for _ in range(15):
            for x, y in batches:
                optimiser.zero_grad  # noqa: B018
                loss = per_position(model(x), y)
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def cnn_cleared_once_an_epoch() -> Loop:
    model = cnn()
    optimiser = optim.Adam(model.parameters(), lr=1e-3)
    trainer, batches = Trainer(model, optimiser), loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(12):
            trainer.train_epoch(batches)

    return Loop(model, [optimiser], run)


def autoencoder_of_two_optimisers_and_one_is_cleared() -> Loop:
    encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 12))
    decoder = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 64))
    model = nn.ModuleDict({"encoder": encoder, "decoder": decoder})
    of_encoder = optim.RMSprop(encoder.parameters(), lr=1e-3)
    of_decoder = optim.RMSprop(decoder.parameters(), lr=1e-3)
    batches = loader(digits()[0], batch_size=64)

    def step(x: Tensor) -> Tensor:
        of_decoder.zero_grad()
        loss = nn.functional.mse_loss(decoder(encoder(x)), x)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        of_encoder.step()
        of_decoder.step()
        return loss.detach()

    def run(w: object) -> None:
        for _ in range(15):
            torch.stack([step(x) for (x,) in batches]).mean()

    return Loop(model, [of_encoder, of_decoder], run)
