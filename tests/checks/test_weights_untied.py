"""weights-untied: an output layer that began as a copy of the embedding, and those that only look like one."""

import copy

import pytest
import torch
from torch import nn

from sleuth.core.subject import Subject
from tests.cases.model.future_leaks import LETTERS
from tests.checks.looking import BASIS, Look, look_with


class Letters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 16)
        self.head = nn.Linear(16, len(LETTERS), bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(ids))


def judged(model: nn.Module) -> Look:
    x, y = torch.randint(len(LETTERS), (2, 32, 8))
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    loss = lambda scores, y: nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())  # noqa: E731
    return look_with({*BASIS, "tying"}, Subject(model, [(x, y)], loss, optimiser), "weights-untied")


def tied() -> Letters:
    model = Letters()
    model.head.weight = model.embedding.weight
    return model


def cloned() -> Letters:
    model = Letters()
    model.head.weight = nn.Parameter(model.embedding.weight.detach().clone())
    return model


def copied_layer() -> Letters:
    model = tied()
    model.head = copy.deepcopy(model.head)
    return model


def written() -> Letters:
    model = Letters()
    model.head.weight.data = model.embedding.weight.data.clone()
    return model


def frozen_table() -> Letters:
    model = cloned()
    model.embedding.weight.requires_grad_(False)
    return model


@pytest.mark.parametrize("made", [cloned, copied_layer, written])
def test_a_copy_of_the_embedding_is_told(made) -> None:
    found = judged(made()).one()
    assert found.where == "head.weight"
    assert "model.head.weight = model.embedding.weight" in found.fix


@pytest.mark.parametrize("made", [tied, Letters, frozen_table])
def test_shared_own_and_frozen_weights_are_left_alone(made) -> None:
    assert not judged(made()).findings


def test_a_tied_model_was_looked_at() -> None:
    assert not judged(tied()).not_examined
