"""What is kept outside of a model is no illness; what no seed reaches is one. And what a checkpoint may leave out."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from tests.checks.trying import attempt
from tests.material import wine

CHECK, PROBE = {"not-reproducible"}, {"two_trainings"}
NOISE = torch.Generator().manual_seed(0)


class Noisy(nn.Module):
    def __init__(self, draw: Any) -> None:
        super().__init__()
        self.first, self.head, self.draw = nn.Linear(13, 16), nn.Linear(16, 3), draw
        self.drop = nn.Dropout(0.3)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.head(self.drop(torch.relu(self.first(x + self.draw(x) / self.calls))))


def loader(**options: Any) -> DataLoader:
    x, y = wine()
    return DataLoader(TensorDataset(torch.as_tensor(x), torch.as_tensor(y)), batch_size=16, shuffle=True, **options)


def training(draw: Any, train: Any = None, **parts: Any) -> Subject:
    model = Noisy(draw)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    parts = {"loss": nn.CrossEntropyLoss(), **parts}
    return Subject(model, train or loader(), optimizer=optimiser, **parts)


def fresh(x: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(np.random.default_rng().normal(size=x.shape), dtype=x.dtype)


def test_numbers_that_no_seed_reaches_are_found_where_they_enter() -> None:
    found = attempt(training(fresh), CHECK, PROBE).findings["not-reproducible"]
    assert found.where == "first"
    assert found.numbers["step"] == 0


@pytest.mark.parametrize("draw", [torch.zeros_like, torch.randn_like])
def test_seeded_numbers_and_counters_of_the_model_are_no_illness(draw: Any) -> None:
    assert attempt(training(draw), CHECK, PROBE).clear == ("not-reproducible",)


def test_a_generator_outside_of_the_model_is_not_examined() -> None:
    subject = training(lambda x: torch.randn(x.shape, generator=NOISE))
    outcome = attempt(subject, CHECK, PROBE)
    assert not outcome.findings
    assert "outside of its model" in outcome.not_examined["not-reproducible"]


def test_a_loss_that_counts_for_itself_is_not_examined() -> None:
    count = 0

    def warming_up(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        return nn.functional.cross_entropy(output, target) * min(1.0, count / 100)

    outcome = attempt(training(torch.zeros_like, loss=warming_up), CHECK, PROBE)
    assert not outcome.findings
    assert "count" in outcome.not_examined["not-reproducible"]


def test_loaders_with_generators_of_their_own_are_no_illness() -> None:
    class Stream:
        """Goes on where it stopped."""

        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Any:
            x, y = wine()
            for _ in range(4):
                self.at = (self.at + 16) % 160
                yield torch.as_tensor(x[self.at : self.at + 16]), torch.as_tensor(y[self.at : self.at + 16])

    for train in (loader(generator=torch.Generator().manual_seed(3)), Stream()):
        assert not attempt(training(torch.zeros_like, train), CHECK, PROBE).findings


@pytest.mark.parametrize(("momentum", "ill"), [(0.0, False), (0.9, True)])
def test_only_an_optimiser_with_a_memory_must_be_saved(momentum: float, ill: bool) -> None:
    model = nn.Sequential(nn.Linear(13, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    checkpoint = (lambda m, o: m.state_dict(), lambda saved, m, o: m.load_state_dict(saved))
    subject = Subject(model, loader(), nn.CrossEntropyLoss(), optimiser, checkpoint=checkpoint)
    outcome = attempt(subject, {"checkpoint-incomplete"}, {"reloading"})
    assert bool(outcome.findings) == ill
    if ill:
        assert "the optimiser has forgotten" in outcome.findings["checkpoint-incomplete"].summary


def test_running_statistics_that_were_not_saved_are_named() -> None:
    model = nn.Sequential(nn.Linear(13, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

    def load(saved: Any, model: nn.Module, optimizer: Any) -> None:
        for name, parameter in model.named_parameters():
            parameter.data.copy_(saved[name])

    checkpoint = (lambda m, o: dict(m.named_parameters()), load)
    subject = Subject(model, loader(), nn.CrossEntropyLoss(), optimiser, checkpoint=checkpoint)
    found = attempt(subject, {"checkpoint-incomplete"}, {"reloading"}).findings["checkpoint-incomplete"]
    assert found.where == "1.running_mean"
