"""Where only biases, scales and single numbers learn: random weights beneath are accused, trained ones are not."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters import adapter_for
from sleuth.core.observation import Absent, Observation
from sleuth.core.subject import Subject
from sleuth.core.trial import FrozenRest
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.offsets import offsets
from tests.material import digits

X, Y = (torch.as_tensor(part) for part in digits())
X = X.float().reshape(len(X), -1)


def rest_of(model: nn.Module, inputs: torch.Tensor = X, target: torch.Tensor = Y) -> FrozenRest | str:
    found: list[Observation] = []
    subject = Subject(model, [(inputs[:32], target[:32])], functional.cross_entropy, None)
    lab = Lab(subject, adapter_for(model), 20.0)
    with lab.adapter.bench(subject) as lab.bench_:
        run_probe(reading, lab, lambda _: None)
        run_probe(offsets, lab, found.append)
    (one,) = found
    return one.reason if isinstance(one, Absent) else one


def mlp() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(X.shape[1], 32), nn.Tanh(), nn.Linear(32, 10))


def only_biases(model: nn.Module) -> nn.Module:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    return model


def trained(model: nn.Module) -> nn.Module:
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for rows in torch.randperm(len(X)).split(64):
        optimiser.zero_grad()
        functional.cross_entropy(model(X[rows]), Y[rows]).backward()
        optimiser.step()
    return model


class Vectors(nn.Module):
    """One number learns, on top of a table."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.as_tensor(table, dtype=torch.float32))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * self.table(x).mean(1)


def learned_vectors() -> np.ndarray:
    """Of the pixels, by how they go together in the digits."""
    values = X.numpy() - X.numpy().mean(0)
    return np.linalg.svd(values, full_matrices=False)[2].T[:, :10]


def test_random_weights_that_only_biases_are_learned_for_are_named() -> None:
    rest = rest_of(only_biases(mlp()))
    assert isinstance(rest, FrozenRest)
    assert (rest.learning, rest.fresh) == (42, "2.weight")


def test_a_new_head_on_a_trained_trunk_is_named() -> None:
    model = trained(mlp())
    model[2] = nn.Linear(32, 10)
    rest = rest_of(only_biases(model))
    assert isinstance(rest, FrozenRest)
    assert rest.fresh == "2.weight"


def test_biases_of_a_model_that_was_trained_may_learn_alone() -> None:
    rest = rest_of(only_biases(trained(mlp())))
    assert isinstance(rest, FrozenRest)
    assert rest.fresh is None


@pytest.mark.parametrize(
    ("table", "fresh"),
    [
        (lambda: np.random.default_rng(0).normal(0, 0.3, (64, 10)), "table.weight"),
        (lambda: np.random.default_rng(0).uniform(-0.2, 0.2, (64, 10)), "table.weight"),
        (learned_vectors, None),
    ],
)
def test_a_table_is_random_or_was_learned(table: Callable[[], np.ndarray], fresh: str | None) -> None:
    tokens = torch.randint(0, 64, (32, 6), generator=torch.Generator().manual_seed(0))
    rest = rest_of(Vectors(table()), tokens)
    assert isinstance(rest, FrozenRest)
    assert rest.fresh == fresh


def test_a_matrix_that_learns_ends_the_question() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    assert "something learns" in str(rest_of(model))
