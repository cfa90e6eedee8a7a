"""The validation set is far easier than the training set, or has been seen: its loss lies where it cannot honestly be."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Attentive, cnn, mlp
from tests.confounders.material import friedman, waves
from tests.material import digit_images
from tests.zoo.data import loader


def digits_validated_on_the_plainest_class() -> Loop:
    """The set was sorted by class before it was cut: validation holds nothing but zeros."""
    x, y = digit_images()
    order = np.argsort(y, kind="stable")
    held_out, rows = order[:170], np.random.default_rng(0).permutation(order[170:])
    noisy = y[rows].copy()
    wrong = np.random.default_rng(1).random(len(rows)) < 0.35
    noisy[wrong] = np.random.default_rng(2).integers(1, 10, wrong.sum())
    known = np.concatenate([rows, held_out[:120]]), np.concatenate([noisy, y[held_out[:120]]])
    model = cnn()
    optimiser = optim.Adam(model.parameters(), lr=2e-3)
    train, validation = loader(x[known[0]], known[1], batch_size=64), loader(x[held_out], y[held_out], shuffle=False)

    def run(w: object) -> None:
        for _ in range(14):
            model.train()
            for images, labels in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                losses = [nn.functional.cross_entropy(model(images), labels).item() for images, labels in validation]
            w.log(val_loss=sum(losses) / len(losses))

    return Loop(model, [optimiser], run)


def regression_validated_on_the_better_instrument() -> Loop:
    """The training rows were measured with a rough instrument, the validation rows with a fine one."""
    x, y = friedman()
    rough = np.random.default_rng(3).normal(0, 1.0, (600, 1))
    model = mlp(10, 24, 1, activation=nn.Tanh)
    optimiser = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    train = loader(x[:600], (y[:600] + rough).astype(np.float32))
    inputs, wanted = torch.as_tensor(x[600:]), torch.as_tensor(y[600:])

    def run(w: object) -> None:
        for _ in range(20):
            losses = []
            for batch, target in train:
                optimiser.zero_grad()
                loss = nn.functional.mse_loss(model(batch), target)
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            with torch.no_grad():
                w.log(loss=float(np.mean(losses)), val_loss=nn.functional.mse_loss(model(inputs), wanted).item())

    return Loop(model, [optimiser], run)


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model, self.optimiser = model, optim.Adam(model.parameters(), lr=2e-3)

    def train(self, batches: object) -> None:
        self.model.train()
        for x, y in batches:
            self.optimiser.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimiser.step()

    @torch.no_grad()
    def validate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        self.model.eval()
        scores = self.model(x)
        loss = nn.functional.cross_entropy(scores, y).item()
        return {"val_loss": loss, "val_accuracy": (scores.argmax(1) == y).float().mean().item()}


def waves_validated_on_what_was_copied_into_training() -> Loop:
    """To balance the sources, 160 carefully labelled waves were copied five times; validation is drawn from them."""
    x, y = waves()
    x = x.reshape(-1, 6, 4)
    rng = np.random.default_rng(4)
    careless = np.where(rng.random(640) < 0.6, rng.integers(0, 3, 640), y[160:])
    inputs, labels = np.concatenate([*[x[:160]] * 5, x[160:]]), np.concatenate([*[y[:160]] * 5, careless])
    trainer = Trainer(Attentive(features=4, length=6, outputs=3))
    train = loader(inputs, labels)

    def run(w: object) -> None:
        for _ in range(8):
            trainer.train(train)
            w.log(**trainer.validate(torch.as_tensor(x[:160]), torch.as_tensor(y[:160])))

    return Loop(trainer.model, [trainer.optimiser], run)
