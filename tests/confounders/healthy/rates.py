"""Learning rates that start from nothing, end in nothing, or go up and down on purpose."""

import math

from torch import nn, optim
from torch.optim import lr_scheduler

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, Recurrent, ResidualNet, Tagger, cnn, mlp, per_position
from tests.confounders.material import facts, friedman, tagged, waves
from tests.material import digit_images, digits
from tests.zoo.data import loader, split_loaders


def transformer_warmed_up_from_zero() -> Loop:
    """The first step has a rate of exactly nothing."""
    model = Attentive(features=8, length=8, outputs=10)
    x, y = digits()
    batches = loader(x.reshape(-1, 8, 8), y, batch_size=64)
    optimiser = optim.AdamW(model.parameters(), lr=2e-3)
    steps = 16 * len(batches)
    schedule = lr_scheduler.LambdaLR(optimiser, lambda n: min(n / 60, max(0.0, (steps - n) / (steps - 60))))

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for rows, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(rows), labels).backward()
                optimiser.step()
                schedule.step()

    return Loop(model, [optimiser], run)


def cnn_with_a_cosine_down_to_zero() -> Loop:
    model = cnn()
    batches = loader(*digit_images(), batch_size=64)
    optimiser = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = lr_scheduler.CosineAnnealingLR(optimiser, T_max=18 * len(batches), eta_min=0.0)

    def run(w: object) -> None:
        for _ in range(18):
            model.train()
            for images, labels in batches:
                loss = nn.functional.cross_entropy(model(images), labels)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()

    return Loop(model, [optimiser], run)


def facts_on_a_triangle() -> Loop:
    model = mlp(64, 48, 4)
    batches = loader(*facts())
    optimiser = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    schedule = lr_scheduler.CyclicLR(optimiser, base_lr=0.01, max_lr=0.15, step_size_up=80, cycle_momentum=False)

    def run(w: object) -> None:
        model.train()
        for _ in range(24):
            for x, told in batches:
                optimiser.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(model(x), told).backward()
                optimiser.step()
                schedule.step()

    return Loop(model, [optimiser], run)


def residual_net_in_one_cycle() -> Loop:
    """The rate, and the momentum against it, go up once and then far below where they began."""
    model = ResidualNet(width=8, blocks=1)
    train, _ = split_loaders(*digit_images(), batch_size=64)
    optimiser = optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    schedule = lr_scheduler.OneCycleLR(optimiser, max_lr=0.2, epochs=14, steps_per_epoch=len(train))

    def run(w: object) -> None:
        for _ in range(14):
            model.train()
            for images, labels in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
                schedule.step()

    return Loop(model, [optimiser], run)


def tagger_with_warm_restarts() -> Loop:
    """Near zero at the end of every cycle and up again at once; the loss jumps a little each time."""
    model = Tagger(tags=3)
    ids, tags = tagged()
    batches = loader(ids, tags - 1)
    optimiser = optim.Adam(model.parameters(), lr=1e-2)
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimiser, T_0=3, T_mult=2)

    def run(w: object) -> None:
        model.train()
        for epoch in range(21):
            for number, (x, y) in enumerate(batches):
                optimiser.zero_grad()
                per_position(model(x), y).backward()
                optimiser.step()
                schedule.step(epoch + number / len(batches))

    return Loop(model, [optimiser], run)


def lstm_with_decay_and_a_step_an_epoch() -> Loop:
    model = Recurrent(1, 3)
    train, _ = split_loaders(*waves())
    optimiser = optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    schedule = lr_scheduler.MultiStepLR(optimiser, milestones=[10, 16], gamma=0.1)

    def epoch() -> float:
        total = 0.0
        for signal, kind in train:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(signal), kind)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            total += loss.item()
        return total / len(train)

    def run(w: object) -> None:
        model.train()
        for _ in range(20):
            w.log(loss=epoch())
            schedule.step()

    return Loop(model, [optimiser], run)


def regression_with_a_rate_set_by_hand() -> Loop:
    """No scheduler: the loop writes into the parameter groups, up for ten steps and then like one over the root."""
    model = mlp(10, 64, 64, 1, activation=nn.GELU)
    batches = loader(*friedman(2000), batch_size=64)
    optimiser = optim.RMSprop(model.parameters(), lr=0.0)

    def run(w: object) -> None:
        model.train()
        step = 0
        for _ in range(24):
            for x, y in batches:
                step += 1
                for group in optimiser.param_groups:
                    group["lr"] = 3e-3 * min(step / 10, math.sqrt(10 / step))
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
