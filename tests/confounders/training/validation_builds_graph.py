"""Validation in eval mode, as it should be, and with a graph for every output that nobody will ever walk back."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, ResidualNet
from tests.confounders.material import continued, masks
from tests.material import digit_images
from tests.zoo.data import split_loaders


def evaluate(model: nn.Module, batches: object) -> tuple[float, float]:
    model.eval()
    right = losses = count = 0.0
    for images, labels in batches:
        scores = model(images)
        losses += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
        right += (scores.argmax(1) == labels).sum().item()
        count += len(labels)
    return losses / count, right / count


def residual_net_with_a_plain_evaluate() -> Loop:
    model = ResidualNet(width=8, blocks=1)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    train, validation = split_loaders(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(14):
            model.train()
            for images, labels in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
            loss, accuracy = evaluate(model, validation)
            w.log(val_loss=loss, val_accuracy=accuracy)

    return Loop(model, [optimiser], run)


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(12)
        self.leave = nn.Conv2d(12, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(torch.relu(self.norm(self.enter(x))))


def masks_where_only_the_metric_is_free_of_gradients() -> Loop:
    model = Denoiser()
    optimiser = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    train, validation = split_loaders(*masks(), batch_size=64)

    def overlap() -> float:
        shares = []
        for noisy, mask in validation:
            guess = model(noisy)
            with torch.no_grad():
                hit = (guess > 0) == (mask > 0.5)
                shares.append(hit.float().mean())
        return torch.stack(shares).mean().item()

    def run(w: object) -> None:
        for _ in range(15):
            model.train()
            for noisy, mask in train:
                loss = nn.functional.binary_cross_entropy_with_logits(model(noisy), mask)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
            model.eval()
            w.log(val_accuracy=overlap())

    return Loop(model, [optimiser], run)


def forecast_detached_after_the_fact() -> Loop:
    """`.detach()` on what the model has already answered comes too late."""

    class Forecast(Recurrent):
        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.rnn(x)[0])

    model = Forecast(1, 1, nn.GRU)
    optimiser = optim.AdamW(model.parameters(), lr=5e-3)
    train, validation = split_loaders(*continued())

    def score(x: Tensor, y: Tensor) -> float:
        return (model(x).detach() - y).square().mean().item()

    def run(w: object) -> None:
        for _ in range(15):
            for x, y in train:
                model.train()
                optimiser.zero_grad()
                nn.functional.smooth_l1_loss(model(x), y).backward()
                optimiser.step()
            model.eval()
            scores = [score(x, y) for x, y in validation]
            w.log(val_loss=sum(scores) / len(scores))

    return Loop(model, [optimiser], run)
