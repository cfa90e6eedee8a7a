"""Dropout is off and batch-norm rests while the weights are trained."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import BagOfWords, ResidualNet, per_position
from tests.confounders.material import TOKENS, sentences, tagged
from tests.material import digit_images
from tests.zoo.data import loader, split_loaders


class DeepTagger(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.2, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(width, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.drop(self.lstm(self.embedding(ids))[0]))


class DroppingBag(BagOfWords):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))


@torch.no_grad()
def accuracy(model: nn.Module, batches: object) -> float:
    model.eval()
    right = [(model(x).argmax(1) == y).float() for x, y in batches]
    return torch.cat(right).mean().item()


def residual_net_never_set_back_after_validation() -> Loop:
    model = ResidualNet(width=8, blocks=1)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)
    train, validation = split_loaders(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for images, labels in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
            w.log(val_accuracy=accuracy(model, validation))

    return Loop(model, [optimiser], run)


def tagger_with_the_mode_of_a_loaded_model() -> Loop:
    """Set to eval as one does after loading weights, and trained on as it was."""
    model = DeepTagger().eval()
    optimiser = optim.AdamW(model.parameters(), lr=5e-3)
    ids, tags = tagged()
    batches = loader(ids, tags - 1)

    def run(w: object) -> None:
        for _ in range(12):
            for x, y in batches:
                loss = per_position(model(x), y)
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()

    return Loop(model, [optimiser], run)


def sentences_with_the_flag_turned_round() -> Loop:
    model = DroppingBag()
    optimiser = optim.RMSprop(model.parameters(), lr=1e-3)
    batches = loader(*sentences())

    def epoch(training: bool) -> float:
        model.train(not training)
        total = 0.0
        with torch.set_grad_enabled(training):
            for ids, mood in batches:
                loss = nn.functional.cross_entropy(model(ids), mood)
                if training:
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                total += loss.item()
        return total / len(batches)

    def run(w: object) -> None:
        for _ in range(12):
            epoch(training=True)

    return Loop(model, [optimiser], run)
