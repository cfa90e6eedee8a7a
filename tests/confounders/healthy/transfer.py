"""Models that were trained before, follow another, or train in turn."""

import copy

import torch
from torch import Tensor, nn, optim
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, cnn, mlp
from tests.confounders.material import colours, waves
from tests.material import digit_images, digits
from tests.zoo.data import loader, split_loaders


def trained(model: nn.Module, x: Tensor, y: Tensor, steps: int = 250) -> nn.Module:
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimiser.step()
    return model


class Transferred(nn.Module):
    def __init__(self, trunk: nn.Module) -> None:
        super().__init__()
        self.trunk, self.head = trunk.requires_grad_(False), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trunk(x).mean((2, 3)))


def head_on_a_frozen_trunk() -> Loop:
    """Batch-norm of the trunk stays in eval on purpose, at every step; only the head trains."""
    images, labels = (torch.as_tensor(a) for a in digit_images())
    trunk = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
    )
    pooled = nn.Sequential(trunk, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5))
    trained(pooled, images[labels < 5], labels[labels < 5], steps=80)
    model = Transferred(trunk)
    optimiser = optim.Adam(model.head.parameters(), lr=3e-2)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(14):
            model.train()
            model.trunk.eval()
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def fine_tuning_with_a_tiny_rate() -> Loop:
    """Everything may move, by a hundred-thousandth a step: the weights are good and are to stay near where they are."""
    x, y = (torch.as_tensor(a) for a in digits())
    model = trained(mlp(64, 256, 256, 10), x, y, steps=150)
    noisy = x + 0.35 * torch.randn_like(x)
    batches = loader(noisy.numpy(), y.numpy())
    optimiser = optim.AdamW(model.parameters(), lr=1e-5)

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for rows, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(rows), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def copy_that_follows_slowly() -> Loop:
    """An exponential average of the weights, validated in place of the model; no optimiser ever touches it."""
    x, y = waves()
    train, validation = split_loaders(x.reshape(-1, 6, 4), y)
    model = Attentive(features=4, length=6, outputs=3)
    follower = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
    optimiser = optim.Adam(model.parameters(), lr=1e-3)

    @torch.no_grad()
    def accuracy() -> float:
        follower.eval()
        return torch.cat([(follower(a).argmax(1) == b).float() for a, b in validation]).mean().item()

    def run(w: object) -> None:
        for _ in range(15):
            model.train()
            for signal, kind in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(signal), kind).backward()
                optimiser.step()
                follower.update_parameters(model)
            w.log(val_accuracy=accuracy())

    return Loop(model, [optimiser], run)


def weights_averaged_at_the_end() -> Loop:
    """For the last third the rate is high and constant, and the averages of its wanderings are kept."""
    model = cnn()
    average = AveragedModel(model)
    batches = loader(*digit_images(), batch_size=64)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    cooling = optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=12, eta_min=0.01)
    wandering = SWALR(optimiser, swa_lr=0.05, anneal_epochs=2)

    def run(w: object) -> None:
        model.train()
        for epoch in range(18):
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
            if epoch >= 12:
                average.update_parameters(model)
                wandering.step()
            else:
                cooling.step()

    return Loop(model, [optimiser], run)


def teacher_and_then_student() -> Loop:
    """First the one trains while the other waits, then the other way round, the teacher in eval and without a graph."""
    x, y = digits()
    batches = loader(x, y, batch_size=64)
    model = nn.ModuleDict({"teacher": mlp(64, 96, 10), "student": mlp(64, 24, 10)})
    of_teacher = optim.Adam(model["teacher"].parameters(), lr=2e-3)
    of_student = optim.Adam(model["student"].parameters(), lr=3e-3)

    def teach(rows: Tensor, labels: Tensor) -> None:
        of_teacher.zero_grad()
        nn.functional.cross_entropy(model["teacher"](rows), labels).backward()
        of_teacher.step()

    def follow(rows: Tensor, labels: Tensor, heat: float = 2.0) -> None:
        with torch.no_grad():
            wanted = torch.softmax(model["teacher"](rows) / heat, dim=1)
        scores = model["student"](rows)
        soft = nn.functional.kl_div(torch.log_softmax(scores / heat, dim=1), wanted, reduction="batchmean")
        of_student.zero_grad()
        (heat**2 * soft + 0.3 * nn.functional.cross_entropy(scores, labels)).backward()
        of_student.step()

    def run(w: object) -> None:
        model["teacher"].train()
        for _ in range(12):
            for rows, labels in batches:
                teach(rows, labels)
        model["teacher"].eval()
        model["student"].train()
        for _ in range(16):
            for rows, labels in batches:
                follow(rows, labels)

    return Loop(model, [of_teacher, of_student], run)


def layers_set_free_one_by_one() -> Loop:
    """The head first; the layers below join the optimiser later, at smaller rates."""
    source, labels = (torch.as_tensor(a) for a in colours())
    donor = trained(cnn(channels=3), source[labels < 5], labels[labels < 5], steps=60)
    model = copy.deepcopy(donor)
    model[-1] = nn.Linear(128, 10)
    body = model[:-1].requires_grad_(False)
    optimiser = optim.Adam(model[-1].parameters(), lr=5e-3)
    batches = loader(*colours(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for epoch in range(18):
            if epoch == 5:
                optimiser.add_param_group({"params": body.requires_grad_(True).parameters(), "lr": 3e-3})
            for images, digit in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), digit).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
