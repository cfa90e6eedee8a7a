"""The schedule brings the rate to nothing long before the training is over."""

from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, Recurrent, cnn
from tests.confounders.material import windows
from tests.material import digit_images, digits
from tests.zoo.data import loader, split_loaders


def cnn_with_a_step_a_batch() -> Loop:
    """A tenth every ten epochs was the plan; the call stands in the loop over the batches."""
    model = cnn()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = optim.lr_scheduler.StepLR(optimiser, step_size=10, gamma=0.1)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(12):
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
                schedule.step()

    return Loop(model, [optimiser], run)


def transformer_with_epochs_taken_for_steps() -> Loop:
    """Warm-up and a straight line to zero, over as many steps as there are epochs."""
    model = Attentive(features=8, length=8, outputs=10)
    x, y = digits()
    batches = loader(x.reshape(-1, 8, 8), y, batch_size=64)
    epochs, warm = 12, 2
    optimiser = optim.AdamW(model.parameters(), lr=2e-3)

    def share(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return max(0.0, (epochs - step) / (epochs - warm))

    schedule = optim.lr_scheduler.LambdaLR(optimiser, share)

    def run(w: object) -> None:
        for _ in range(epochs):
            model.train()
            for rows, labels in batches:
                loss = nn.functional.cross_entropy(model(rows), labels)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                schedule.step()
                optimiser.zero_grad()

    return Loop(model, [optimiser], run)


class Forecaster:
    """Told to wait for the loss to rise, the plateau schedule takes every epoch for a bad one."""

    def __init__(self) -> None:
        self.model = Recurrent(1, 1, nn.GRU)
        self.optimiser = optim.Adam(self.model.parameters(), lr=1e-3)
        self.schedule = optim.lr_scheduler.ReduceLROnPlateau(self.optimiser, mode="max", factor=0.2, patience=0)

    def fit(self, x: Tensor, y: Tensor) -> float:
        self.optimiser.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimiser.step()
        return loss.item()


def forecast_with_a_plateau_seen_everywhere() -> Loop:
    forecaster = Forecaster()
    train, _ = split_loaders(*windows())

    def run(w: object) -> None:
        forecaster.model.train()
        for _ in range(24):
            losses = [forecaster.fit(x, y) for x, y in train]
            mean = sum(losses) / len(losses)
            forecaster.schedule.step(mean)
            w.log(loss=mean)

    return Loop(forecaster.model, [forecaster.optimiser], run)
