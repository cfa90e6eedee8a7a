"""Several parts are added up to one step, and nobody divides by their number."""

from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, Recurrent, cnn
from tests.confounders.material import waves, windows
from tests.material import digit_images
from tests.zoo.data import loader

PARTS = 8


def cnn_that_steps_every_eighth_batch() -> Loop:
    model = cnn()
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    batches = loader(*digit_images(), batch_size=8)

    def run(w: object) -> None:
        model.train()
        for _ in range(8):
            optimiser.zero_grad()
            for number, (images, labels) in enumerate(batches, start=1):
                loss = nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                if number % PARTS == 0:
                    optimiser.step()
                    optimiser.zero_grad()

    return Loop(model, [optimiser], run)


def lstm_fed_in_four_chunks() -> Loop:
    """A batch of 64 does not fit, so it is cut in four."""
    x, y = windows()
    model = Recurrent(1, 1)
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.MSELoss()

    def run(w: object) -> None:
        for _ in range(20):
            for inputs, targets in loader(x, y, batch_size=64):
                optimiser.zero_grad()
                for part, wanted in zip(inputs.chunk(4), targets.chunk(4), strict=True):
                    criterion(model(part), wanted).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class Trainer:
    def __init__(self, model: nn.Module, accumulate: int) -> None:
        self.model, self.accumulate = model, accumulate
        self.optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
        self.seen = 0

    def part(self, x, y) -> float:
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.seen += 1
        if self.seen % self.accumulate == 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
            self.optimiser.step()
            self.optimiser.zero_grad()
        return loss.item()


def transformer_whose_trainer_counts_parts() -> Loop:
    x, y = waves()
    trainer = Trainer(Attentive(features=4, length=6, outputs=3), accumulate=4)

    def run(w: object) -> None:
        for _ in range(12):
            losses = [trainer.part(a, b) for a, b in loader(x.reshape(-1, 6, 4), y, batch_size=16)]
            w.log(loss=sum(losses) / len(losses))

    return Loop(trainer.model, [trainer.optimiser], run)
