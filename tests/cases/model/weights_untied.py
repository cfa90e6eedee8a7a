"""A character model of a real text: the output layer shares the embedding's weight, or began as a copy of it."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.cases.model.future_leaks import LETTERS, windows


def training(kit: Kit, tied: bool) -> Subject:
    kit.require("torch")
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(len(LETTERS), 32)
            nn.init.normal_(self.embedding.weight, std=0.1)
            self.memory = nn.GRU(32, 32, batch_first=True)
            self.head = nn.Linear(32, len(LETTERS), bias=False)
            shared = self.embedding.weight
            self.head.weight = shared if tied else nn.Parameter(shared.detach().clone())

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            hidden, _ = self.memory(self.embedding(ids))
            return self.head(hidden)

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(logits.transpose(1, 2), targets)

    model = Model()
    return Subject(model, kit.loader(*(part[::4] for part in windows())), loss, kit.optimiser(model, "adam", lr=3e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, tied=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, tied=True)
