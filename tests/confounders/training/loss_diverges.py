"""The loss rises for good, at a rate that is none too high: what is done with the gradient is wrong, or what is aimed at."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Recurrent, Tagger, mlp, per_position
from tests.confounders.material import tagged, windows
from tests.zoo.data import loader


def tagger_that_maximises() -> Loop:
    """The optimiser's line comes from a policy gradient, where more is better."""
    model = Tagger(tags=3)
    optimiser = optim.AdamW(model.parameters(), lr=1e-3, maximize=True)
    ids, tags = tagged()
    batches = loader(ids, tags - 1)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for x, y in batches:
                optimiser.zero_grad()
                per_position(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class SmoothDistance(torch.autograd.Function):
    """log cosh of the difference, with a backward by hand that takes the difference the other way round."""

    @staticmethod
    def forward(ctx: Any, guess: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(guess, target)
        gap = (guess - target).abs()
        return (gap + torch.log1p(torch.exp(-2 * gap)) - math.log(2)).mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        guess, target = ctx.saved_tensors
        return gradients[0] * torch.tanh(target - guess) / guess.numel(), None


def forecast_with_a_loss_derived_by_hand() -> Loop:
    model = Recurrent(1, 1, nn.GRU)
    optimiser = optim.Adam(model.parameters(), lr=2e-3)
    batches = loader(*windows())

    def epoch() -> list[float]:
        losses = []
        for x, y in batches:
            loss = SmoothDistance.apply(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            losses.append(loss.item())
        return losses

    def run(w: object) -> None:
        for _ in range(14):
            model.train()
            w.log(loss=float(np.mean(epoch())))

    return Loop(model, [optimiser], run)


def values_that_feed_on_themselves() -> Loop:
    """Fitted Q on a pendulum-like toy, its own answers as targets, no second network and no end of an episode: each
    estimate is raised by the next."""
    model = mlp(3, 64, 64, 2)
    optimiser = optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    angle, speed = rng.uniform(-np.pi, np.pi, 4000), rng.normal(0, 1, 4000)
    action = rng.integers(0, 2, 4000)
    reward = np.cos(angle) + rng.normal(0, 0.05, 4000)
    later = angle + 0.3 * (speed + np.where(action == 1, 0.8, -0.8))
    now, then = (np.stack([np.cos(a), np.sin(a), speed], axis=1).astype(np.float32) for a in (angle, later))
    memory = loader(now, action, reward.astype(np.float32), then, batch_size=64)

    def learn(state: Tensor, chosen: Tensor, gain: Tensor, after: Tensor) -> float:
        with torch.no_grad():
            target = gain + 1.05 * model(after).amax(1)
        guess = model(state).gather(1, chosen[:, None]).squeeze(1)
        loss = nn.functional.mse_loss(guess, target)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimiser.step()
        return loss.item()

    def run(w: object) -> None:
        for _ in range(16):
            for transition in memory:
                learn(*transition)

    return Loop(model, [optimiser], run)
