"""Healthy models to put a sick training around."""

import itertools

import torch
from torch import Tensor, nn

from tests.confounders.material import ITEMS, LETTERS, TOKENS, USERS, WORDS


def mlp(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


def cnn(classes: int = 10, channels: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, classes),
    )


def segmenter(channels: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, channels, 1)
    )


def autoencoder(width: int = 64, code: int = 16) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, code), nn.ReLU(), nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, width)
    )


class ResidualBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(torch.relu(self.conv1(torch.relu(self.norm(x)))))


class ResidualNet(nn.Module):
    def __init__(self, classes: int = 10, channels: int = 1, width: int = 16, blocks: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, width, 3, padding=1)
        self.blocks = nn.Sequential(*[ResidualBlock(width) for _ in range(blocks)])
        self.head = nn.Linear(width * 4, classes)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.blocks(self.stem(x)))
        return self.head(nn.functional.adaptive_avg_pool2d(h, 2).flatten(1))


class Recurrent(nn.Module):
    """Reads (n, t, features) and answers from the last state."""

    def __init__(self, features: int, outputs: int, cell: type[nn.RNNBase] = nn.LSTM, width: int = 32) -> None:
        super().__init__()
        self.rnn = cell(features, width, batch_first=True)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x)
        return self.head(states[:, -1])


class Tagger(nn.Module):
    """A tag for each token: (n, t) to (n, t, tags)."""

    def __init__(self, tags: int = 4, vocabulary: int = TOKENS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, tags)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.gru(self.embedding(ids))[0])


class BagOfWords(nn.Module):
    def __init__(self, outputs: int = 2, vocabulary: int = WORDS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 24, padding_idx=0)
        self.body = mlp(24, 32, outputs)

    def forward(self, ids: Tensor) -> Tensor:
        real = (ids != 0).unsqueeze(-1)
        return self.body((self.embedding(ids) * real).sum(1) / real.sum(1).clamp(min=1))


class Attentive(nn.Module):
    """A pre-norm encoder over (n, t, features), averaged."""

    def __init__(self, features: int, length: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Linear(features, 32)
        self.positions = nn.Parameter(torch.randn(1, length, 32) * 0.02)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.encoder(self.embed(x) + self.positions)).mean(1))


class LetterModel(nn.Module):
    """A causal transformer: (n, t) ids to (n, t, letters)."""

    def __init__(self, length: int = 24, letters: int = len(LETTERS), width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.positions = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        hidden = self.embedding(ids) + self.positions(torch.arange(length))
        return self.head(self.norm(self.body(hidden, mask=mask, is_causal=True)))


class Factors(nn.Module):
    """Ratings from (user, item) ids."""

    def __init__(self, users: int = USERS, items: int = ITEMS, rank: int = 8) -> None:
        super().__init__()
        self.users = nn.Embedding(users, rank)
        self.items = nn.Embedding(items, rank)
        self.body = mlp(3 * rank, 32, 1)

    def forward(self, pairs: Tensor) -> Tensor:
        user, item = self.users(pairs[:, 0]), self.items(pairs[:, 1])
        return self.body(torch.cat([user, item, user * item], dim=1))


def per_position(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy over (n, t, classes) against (n, t)."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
