"""Loops with more in them than a forward, a backward and a step."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import ResidualNet, mlp
from tests.confounders.material import facts
from tests.material import cancer, digit_images
from tests.zoo.data import split_loaders


def cancer_by_lbfgs() -> Loop:
    """Each step calls the closure several times."""
    x, y = cancer()
    inputs, targets = torch.as_tensor(x), torch.as_tensor(y[:, None].astype("float32"))
    model = mlp(30, 12, 1, activation=nn.Tanh)
    optimiser = optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, history_size=6)

    def closure() -> Tensor:
        optimiser.zero_grad()
        fit = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
        loss = fit + 1e-3 * sum(p.square().sum() for p in model.parameters())
        loss.backward()
        return loss

    def run(w: object) -> None:
        model.train()
        for _ in range(120):
            optimiser.step(closure)

    return Loop(model, [optimiser], run)


class Fitting:
    """Validates every fifty steps in the middle of an epoch, with the mode set and set back."""

    def __init__(self, model: nn.Module, train: object, validation: object) -> None:
        self.model, self.train, self.validation = model, train, validation
        self.optimiser = optim.Adam(model.parameters(), lr=5e-3)
        self.curve: list[float] = []

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        self.model.eval()
        losses, right = [], []
        for images, labels in self.validation:
            scores = self.model(images)
            losses.append(nn.functional.cross_entropy(scores, labels).item())
            right.append((scores.argmax(1) == labels).float())
        self.model.train()
        return {"val_loss": sum(losses) / len(losses), "val_accuracy": torch.cat(right).mean().item()}

    def fit(self, w: object, epochs: int) -> None:
        self.model.train()
        for _ in range(epochs):
            for images, labels in self.train:
                self.optimiser.zero_grad()
                loss = nn.functional.cross_entropy(self.model(images), labels)
                loss.backward()
                self.optimiser.step()
                self.curve.append(loss.item())
                if len(self.curve) % 50 == 0:
                    w.log(loss=sum(self.curve[-50:]) / 50, **self.validate())


def validation_every_fifty_steps() -> Loop:
    fitting = Fitting(ResidualNet(width=8, blocks=1), *split_loaders(*digit_images(), batch_size=64))
    return Loop(fitting.model, [fitting.optimiser], lambda w: fitting.fit(w, epochs=14))


def batches_from_two_workers() -> Loop:
    x, y = (torch.as_tensor(a) for a in facts())
    data = torch.utils.data.TensorDataset(x, y)
    model = mlp(64, 48, 4)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)

    def run(w: object) -> None:
        batches = torch.utils.data.DataLoader(data, 64, shuffle=True, num_workers=2, persistent_workers=True)
        model.train()
        for _ in range(16):
            for images, told in batches:
                optimiser.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(model(images), told).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
