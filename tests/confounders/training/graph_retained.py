"""What is kept for a printout drags the graph of every step along."""

from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import plane, windows
from tests.material import digit_images
from tests.zoo.data import loader


def regression_with_a_running_total() -> Loop:
    model = mlp(12, 64, 64, 3)
    optimiser = optim.Adam(model.parameters(), lr=2e-3)
    batches = loader(*plane())

    def run(w: object) -> None:
        total, epochs = 0.0, 16
        for _ in range(epochs):
            for x, y in batches:
                optimiser.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimiser.step()
                total += loss
        w.log(mean_loss=total.item() / (epochs * len(batches)))

    return Loop(model, [optimiser], run)


class Trainer:
    """Keeps all scores for a confusion matrix at the very end."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.scores: list[Tensor] = []

    def step(self, images: Tensor, labels: Tensor) -> None:
        self.optimiser.zero_grad()
        scores = self.model(images)
        nn.functional.cross_entropy(scores, labels).backward()
        self.optimiser.step()
        self.scores.append(scores)


def cnn_whose_scores_are_collected() -> Loop:
    trainer = Trainer(cnn())
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(10):
            for images, labels in batches:
                trainer.step(images, labels)

    return Loop(trainer.model, [trainer.optimiser], run)


def lstm_with_a_smoothed_loss() -> Loop:
    x, y = windows()
    model = Recurrent(1, 1, width=16)
    optimiser = optim.Adam(model.parameters(), lr=1e-2)
    batches = loader(x, y)

    def run(w: object) -> None:
        smoothed = None
        for _ in range(14):
            for inputs, following in batches:
                loss = nn.functional.mse_loss(model(inputs), following)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                smoothed = loss if smoothed is None else 0.98 * smoothed + 0.02 * loss

    return Loop(model, [optimiser], run)
