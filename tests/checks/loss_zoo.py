"""Healthy trainings, one for each way to wire a loss."""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import nn
from torch.nn import functional as fn

from sleuth import Subject
from tests.checks.loss_zoo_material import focal, mlp, painter, pairs, pixels, strokes, teacher, training
from tests.material import cancer, diabetes

HEALTHY: dict[str, Callable[[], Subject]] = {}


def healthy(build: Callable[[], Subject]) -> Callable[[], Subject]:
    HEALTHY[build.__name__] = build
    return build


@cache
def scan_lines() -> tuple[np.ndarray, np.ndarray]:
    """Images row by row, and for each row the class of its image."""
    x, y = pixels()
    return x.reshape(-1, 8, 8), np.repeat(y[:, None], 8, axis=1)


class Scanner(nn.Module):
    """Both directions, so that every row can know the class. Classes stand on axis 1."""

    def __init__(self, outputs: int = 10) -> None:
        super().__init__()
        self.rnn = nn.GRU(8, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0]).transpose(1, 2)


@healthy
def multi_label() -> Subject:
    x, y = pixels()
    bits = ((y[:, None] >> np.arange(4)) & 1).astype(np.float32)
    return training(mlp(64, 4), (x, bits), nn.BCEWithLogitsLoss())


@healthy
def binary() -> Subject:
    x, y = cancer()
    return training(mlp(30, 1), (x, y.astype(np.float32)), lambda out, t: fn.binary_cross_entropy_with_logits(out.squeeze(1), t))


@healthy
def probabilities_and_bce() -> Subject:
    x, y = cancer()
    return training(mlp(30, 1, nn.Sigmoid()), (x, y.astype(np.float32)[:, None]), nn.BCELoss())


@healthy
def segmentation() -> Subject:
    return training(painter(3), strokes(), nn.CrossEntropyLoss())


@healthy
def a_class_for_each_position() -> Subject:
    return training(Scanner(), scan_lines(), nn.CrossEntropyLoss())


@healthy
def ignored_positions() -> Subject:
    x, y = scan_lines()
    hidden = np.random.default_rng(0).random(y.shape) < 0.4
    return training(Scanner(), (x, np.where(hidden, -100, y)), nn.CrossEntropyLoss(ignore_index=-100))


@healthy
def label_smoothing() -> Subject:
    return training(mlp(64, 10), pixels(), nn.CrossEntropyLoss(label_smoothing=0.1))


@healthy
def class_weights() -> Subject:
    return training(mlp(64, 10), pixels(), nn.CrossEntropyLoss(weight=torch.linspace(0.5, 2, 10)))


@healthy
def soft_targets() -> Subject:
    x, y = pixels()
    soft = (np.eye(10, dtype=np.float32)[y] * 0.85 + 0.015).astype(np.float32)
    return training(mlp(64, 10), (x, soft), nn.CrossEntropyLoss())


@healthy
def distillation_with_temperature() -> Subject:
    temperature, known_by = 4.0, teacher()

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y = batch
        out = model(x)
        with torch.no_grad():
            known = known_by(x)
        soft = fn.kl_div(fn.log_softmax(out / temperature, 1), fn.softmax(known / temperature, 1), reduction="batchmean")
        return 0.7 * temperature**2 * soft + 0.3 * fn.cross_entropy(out, y)

    return training(mlp(64, 10), pixels(), step=step)


@healthy
def distillation_alone() -> Subject:
    known_by = teacher()

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        with torch.no_grad():
            known = known_by(batch[0]).softmax(1)
        return fn.kl_div(model(batch[0]).log_softmax(1), known, reduction="batchmean")

    return training(mlp(64, 10), pixels(), step=step)


@healthy
def focal_loss() -> Subject:
    return training(mlp(64, 10), pixels(), focal)


@healthy
def nll_from_logsumexp() -> Subject:
    class Normalised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = self.net(x)
            return scores - torch.logsumexp(scores, dim=1, keepdim=True)

    return training(Normalised(), pixels(), nn.NLLLoss())


class Pairs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(64, 16)

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.net(one), self.net(other)


@healthy
def cosine_embedding() -> Subject:
    return training(Pairs(), pairs(), lambda out, y: fn.cosine_embedding_loss(*out, y, margin=0.2))


@healthy
def triplet() -> Subject:
    x, y = pixels()
    rng = np.random.default_rng(0)
    same = [rng.choice(np.flatnonzero(y == c)) for c in y]
    other = [rng.choice(np.flatnonzero(y != c)) for c in y]

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        return fn.triplet_margin_loss(*(model(part) for part in batch))

    return training(mlp(64, 16), (x, x[same], x[other]), step=step)


@healthy
def poisson_counts() -> Subject:
    x, _ = diabetes()
    counts = np.random.default_rng(0).poisson(np.exp(0.5 + 0.4 * x[:, 2] + 0.4 * x[:, 8]))
    return training(mlp(10, 1), (x, counts.astype(np.float32)[:, None]), nn.PoissonNLLLoss())


class MeanAndVariance(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.mean, self.spread = nn.Linear(32, 1), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.body(x)
        return self.mean(h), fn.softplus(self.spread(h)) + 1e-4


@healthy
def gaussian_nll() -> Subject:
    return training(MeanAndVariance(), diabetes(), lambda out, y: fn.gaussian_nll_loss(out[0], y, out[1]))


@healthy
def margins() -> Subject:
    return training(mlp(64, 10), pixels(), nn.MultiMarginLoss())


@healthy
def hinge_by_hand() -> Subject:
    x, y = cancer()
    signs = (2.0 * y - 1).astype(np.float32)[:, None]
    return training(mlp(30, 1), (x, signs), lambda out, t: fn.relu(1 - out * t).mean())


@healthy
def soft_margin() -> Subject:
    x, y = cancer()
    return training(mlp(30, 1), (x, (2.0 * y - 1).astype(np.float32)[:, None]), nn.SoftMarginLoss())


@healthy
def dice_on_probabilities() -> Subject:
    x, y = strokes()

    def dice(out: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        both = (out * t).sum((2, 3))
        return 1 - ((2 * both + 1) / (out.sum((2, 3)) + t.sum((2, 3)) + 1)).mean()

    model = nn.Sequential(*painter(1), nn.Sigmoid())
    return training(model, (x, (y > 1).astype(np.float32)[:, None]), dice)


@healthy
def ordered_classes() -> Subject:
    """Severity 0 to 4 as four questions: is it above 0, above 1, …?"""
    x, y = diabetes()
    severity = np.digitize(y[:, 0], np.quantile(y, (0.2, 0.4, 0.6, 0.8)))
    above = (severity[:, None] > np.arange(4)).astype(np.float32)
    return training(mlp(10, 4), (x, above), nn.BCEWithLogitsLoss())


@healthy
def mixture_density() -> Subject:
    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        weights, means, logs = out.chunk(3, dim=1)
        each = -0.5 * ((y - means) / logs.exp()) ** 2 - logs - 0.919
        return -torch.logsumexp(fn.log_softmax(weights, 1) + each, dim=1).mean()

    return training(mlp(10, 9), diabetes(), loss)


@healthy
def huber() -> Subject:
    return training(mlp(10, 1), diabetes(), nn.HuberLoss())


@healthy
def quantiles() -> Subject:
    levels = torch.tensor([0.1, 0.5, 0.9])

    def pinball(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        error = y - out
        return torch.maximum(levels * error, (levels - 1) * error).mean()

    return training(mlp(10, 3), diabetes(), pinball)


@healthy
def heavier_positives() -> Subject:
    x, y = pixels()
    return training(mlp(64, 1), (x, (y == 3).astype(np.float32)[:, None]), nn.BCEWithLogitsLoss(pos_weight=torch.tensor([9.0])))


@healthy
def summed_up() -> Subject:
    return training(mlp(64, 10), pixels(), nn.CrossEntropyLoss(reduction="sum"), lr=1e-3)


@healthy
def uncertainty_weights() -> Subject:
    """Two tasks, weighted by parameters of the loss."""
    x, y = pixels()

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
            self.which, self.ink = nn.Linear(64, 10), nn.Linear(64, 1)
            self.logs = nn.Parameter(torch.zeros(2))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            h = self.body(x)
            return {"which": self.which(h), "ink": self.ink(h)}

    def step(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y, ink = batch
        out = model(x)
        parts = torch.stack([fn.cross_entropy(out["which"], y), fn.mse_loss(out["ink"], ink)])
        return (parts * torch.exp(-model.logs) + model.logs).sum()

    ink = x.mean(1, keepdims=True)
    return training(Two(), (x, y, ((ink - ink.mean()) / ink.std()).astype(np.float32)), step=step)


@healthy
def ctc() -> Subject:
    """Two digits side by side, read from left to right; class 0 is the blank."""
    x, y = pixels()
    images = x.reshape(-1, 8, 8)
    order = np.random.default_rng(0).permutation(len(x))
    pairs = np.concatenate([images, images[order]], axis=2).transpose(0, 2, 1).copy()
    words = np.stack([y, y[order]], axis=1) + 1

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(8, 48, batch_first=True, bidirectional=True)
            self.head = nn.Linear(96, 11)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return fn.log_softmax(self.head(self.rnn(x)[0]), dim=-1)

    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        lengths = torch.full((len(y),), out.shape[1]), torch.full((len(y),), 2)
        return fn.ctc_loss(out.transpose(0, 1), y, *lengths)

    return training(Reader(), (pairs, words), loss)
