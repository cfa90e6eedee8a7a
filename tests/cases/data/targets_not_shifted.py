"""A character model of a real text, whose targets are the letters it is given, or those after them."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.cases.model.future_leaks import LETTERS, windows


def character_model(kit: Kit, inputs: np.ndarray, targets: np.ndarray, cut: int = 0) -> Subject:
    """`cut`: by how much the loss itself shifts the targets."""
    kit.require("torch")
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(len(LETTERS), 32)
            self.memory = nn.GRU(32, 64, batch_first=True)
            self.head = nn.Linear(64, len(LETTERS))

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            hidden, _ = self.memory(self.embedding(ids))
            return self.head(hidden)

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        kept = logits[:, : logits.shape[1] - cut]
        return nn.functional.cross_entropy(kept.reshape(-1, kept.shape[-1]), targets[:, cut:].reshape(-1))

    model = Model()
    return Subject(model, kit.loader(inputs, targets), loss, kit.optimiser(model, "adam", lr=3e-3))


def few_windows() -> tuple[np.ndarray, np.ndarray]:
    inputs, following = windows()
    return inputs[::4], following[::4]


def sick(kit: Kit) -> Subject:
    inputs, _ = few_windows()
    return character_model(kit, inputs, inputs.copy())


def healthy(kit: Kit) -> Subject:
    return character_model(kit, *few_windows())
