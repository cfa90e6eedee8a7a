"""The gradients are there, and are cleared just before the step that was to use them."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, Factors, ResidualNet
from tests.confounders.material import ratings, waves
from tests.material import digit_images
from tests.zoo.data import loader


def saliency(model: nn.Module, images: Tensor) -> Tensor:
    """How much each pixel matters for the best score; leaves no gradients behind, nor any that were there."""
    images = images.clone().requires_grad_()
    score = model(images).amax(1).sum()
    (gradient,) = torch.autograd.grad(score, images)
    model.zero_grad()
    return gradient.abs()


def residual_net_that_draws_saliency() -> Loop:
    model = ResidualNet(width=8, blocks=1)
    optimiser = optim.AdamW(model.parameters(), lr=2e-3)
    batches = loader(*digit_images(), batch_size=64)
    drawn: list[float] = []

    def run(w: object) -> None:
        for _ in range(8):
            model.train()
            for images, labels in batches:
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                drawn.append(saliency(model, images[:4]).mean().item())
                optimiser.step()

    return Loop(model, [optimiser], run)


def transformer_that_accumulates_and_clears_too_soon() -> Loop:
    model = Attentive(features=4, length=6, outputs=3)
    x, y = waves()
    batches = loader(x.reshape(-1, 6, 4), y, batch_size=16)
    optimiser = optim.Adam(model.parameters(), lr=1e-3)
    parts = 4

    def run(w: object) -> None:
        model.train()
        for _ in range(12):
            for i, (signal, kind) in enumerate(batches):
                loss = nn.functional.cross_entropy(model(signal), kind) / parts
                loss.backward()
                if (i + 1) % parts == 0:
                    optimiser.zero_grad()
                    optimiser.step()

    return Loop(model, [optimiser], run)


def ratings_with_zeros_written_in_place() -> Loop:
    """The old manner: zeros instead of None, so the step finds gradients, and nothing in them."""
    model = Factors()
    batches = loader(*ratings())
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def fit(pairs: Tensor, stars: Tensor) -> float:
        loss = nn.functional.mse_loss(model(pairs), stars)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.zero_grad(set_to_none=False)
        optimiser.step()
        return loss.item()

    def run(w: object) -> None:
        for _ in range(10):
            losses = [fit(pairs, stars) for pairs, stars in batches]
            w.log(loss=sum(losses) / len(losses))

    return Loop(model, [optimiser], run)
