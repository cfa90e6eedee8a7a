"""An id is larger than the embedding has rows."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Factors, mlp, per_position
from tests.confounders.material import LETTERS, WORDS, letters, ratings, sentences
from tests.zoo.data import split_loaders


class SentenceGRU(nn.Module):
    """As many rows as there are words; the padding, which took number 0, was not counted."""

    def __init__(self) -> None:
        super().__init__()
        words = WORDS - 1
        self.embedding = nn.Embedding(words, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 2)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.gru(self.embedding(ids))
        return self.head(states.mean(1))


class FourGrams(nn.Module):
    """The table holds the fifty commonest letters; nobody mapped the others to "unknown"."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 12)
        self.body = mlp(48, 64, len(LETTERS))

    def forward(self, ids: Tensor) -> Tensor:
        padded = nn.functional.pad(ids, (3, 0))
        vectors = self.table(padded).unfold(1, 4, 1)
        return self.body(torch.flatten(vectors, 2))


def padding_not_counted() -> Subject:
    model = SentenceGRU()
    train, validation = split_loaders(*sentences())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def users_counted_from_one() -> Subject:
    model = Factors()
    pairs, y = ratings()
    train, validation = split_loaders(pairs + 1, y)
    return Subject(model, train, nn.MSELoss(), optim.Adagrad(model.parameters(), lr=0.05), validation)


def letters_beyond_a_cut_vocabulary() -> Subject:
    model = FourGrams()
    train, validation = split_loaders(*letters())
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=2e-3), validation)
