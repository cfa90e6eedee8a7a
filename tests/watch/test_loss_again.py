"""The loss of a training that is over, put together anew: what comes to the same number as then, and what is let alone."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

from sleuth.adapters.torch import ADAPTER
from sleuth.adapters.torch.watching.watching import TorchWatching
from sleuth.core.contract.kept import Kept, Passed
from sleuth.core.subject import Parts, call_model
from sleuth.probes.lab.gathered_batches import gather
from tests.material import diabetes, digits

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def kept_of(loss: Loss, model: nn.Module, data: tuple[Any, ...]) -> Kept:
    """Ten steps of a watched training, and what is left of them."""
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*map(torch.as_tensor, data)), batch_size=24, shuffle=True)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    watching = TorchWatching(model, [optimiser], every=1, overhead=0.02, keeps=True)
    watching.open()
    try:
        for _, (x, y) in zip(range(10), loader, strict=False):
            optimiser.zero_grad()
            loss(model, x, y).backward()
            optimiser.step()
    finally:
        watching.close()
    kept = watching.take_kept()
    assert kept is not None
    return kept


def mlp(*widths: int) -> nn.Sequential:
    torch.manual_seed(1)
    first, second, last = widths
    return nn.Sequential(nn.Linear(first, second), nn.ReLU(), nn.Linear(second, last))


def entropy(z: Tensor, y: Tensor) -> Tensor:
    return -F.log_softmax(z, 1).gather(1, y[:, None]).mean()


WEIGHTS = torch.linspace(0.5, 1.5, 10)
SMALL = torch.tensor(0.3)

CLASSIFIERS: dict[str, Loss] = {
    "a loss function": lambda m, x, y: F.cross_entropy(m(x), y),
    "a part of a sum": lambda m, x, y: F.cross_entropy(m(x), y) / 4,
    "two losses": lambda m, x, y: (z := m(x)).pow(2).mean() * SMALL + F.cross_entropy(z, y),
    "in two steps": lambda m, x, y: F.nll_loss(F.log_softmax(m(x), dim=1), y),
    "by hand": lambda m, x, y: entropy(m(x), y),
    "with weights": lambda m, x, y: (F.one_hot(y, 10) * WEIGHTS * -F.log_softmax(m(x), 1)).sum(1).mean(),
    "with a penalty": lambda m, x, y: F.cross_entropy(m(x), y) + 1e-2 * sum(p.pow(2).sum() for p in m.parameters()),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_loss_comes_to_what_it_was(name: str) -> None:
    model = mlp(64, 16, 10)
    first: list[float] = []

    def loss(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        made = CLASSIFIERS[name](m, x, y)
        first.append(made.item())
        return made

    kept = kept_of(loss, model, digits())
    assert kept.at_start, kept.remarks
    parts, subject = kept.train[0].parts, kept.subject
    again = subject.loss(call_model(subject.model, subject.model.forward, parts.inputs), parts.target)
    assert again.item() == pytest.approx(first[0], rel=1e-5)
    assert again.item() != pytest.approx(first[-1], rel=1e-3), "with the weights of the first step"


def test_dropout_is_no_obstacle_as_the_dice_fall_as_they_did() -> None:
    model = mlp(64, 16, 10)
    model[1] = nn.Sequential(nn.ReLU(), nn.Dropout(0.5))
    assert kept_of(CLASSIFIERS["a loss function"], model, digits()).at_start


class Remembers(nn.Module):
    """Something that is no buffer goes from step to step."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.seen = mlp(64, 16, 10), 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1.0
        return self.body(x) * self.seen


def test_a_loss_that_comes_out_otherwise_is_not_experimented_with() -> None:
    kept = kept_of(CLASSIFIERS["a loss function"], Remembers(), digits())
    assert not kept.at_start
    assert "computed again, the loss of the first batch is" in kept.remarks[-1]


def averaged(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The average by hand: a number of this very batch stands in it."""
    return (m(x).squeeze(-1) - y.squeeze(-1)).pow(2).sum() / len(x)


def rebuilding(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The target that the loader brings along is not looked at."""
    return (m(x) - x[:, :1]).pow(2).mean()


@pytest.mark.parametrize(("loss", "reason"), [(averaged, "size of the batch"), (rebuilding, "cannot be told")])
def test_what_may_be_of_this_batch_alone_is_not_taken_for_the_rule(loss: Loss, reason: str) -> None:
    kept = kept_of(loss, mlp(10, 8, 1), diabetes())
    assert not kept.at_start
    assert reason in kept.remarks[-1]


def test_samples_that_are_told_from_the_rest_of_their_batch_stay_with_it() -> None:
    x = torch.randn(48, 6, generator=torch.Generator().manual_seed(0))
    for targets, together in ((torch.arange(24), False), (torch.arange(24) % 5, True)):
        batches = [Passed(i, Parts(rows, targets, (rows, targets))) for i, rows in enumerate(x.split(24))]
        assert (gather(batches, ADAPTER).arrays is not None) == together
