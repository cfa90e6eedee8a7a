"""Dropout that is left on to see how sure a model is."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from tests.checks.loops import batches, loss_of, names, net, watch


def several_passes(model: nn.Module, data: Callable[[], Iterator[Tensor]]) -> None:
    for _ in range(5):
        torch.cat([model(x) for x in data()])


def several_answers_to_each(model: nn.Module, data: Callable[[], Iterator[Tensor]]) -> None:
    for x in data():
        torch.stack([model(x) for _ in range(5)]).std(0)


def several_answers_to_copies(model: nn.Module, data: Callable[[], Iterator[Tensor]]) -> None:
    for x in data():
        torch.stack([model(x.clone()) for _ in range(5)]).std(0)


def one_pass(model: nn.Module, data: Callable[[], Iterator[Tensor]]) -> None:
    torch.cat([model(x) for x in data()])


def one_pass_for_each_metric(model: nn.Module, data: Callable[[], Iterator[Tensor]]) -> None:
    for _ in range(2):
        torch.cat([model(x) for x in data()])


@pytest.mark.parametrize(
    ("asks", "meant"),
    [
        (several_passes, True),
        (several_answers_to_each, True),
        (several_answers_to_copies, True),
        (one_pass, False),
        (one_pass_for_each_metric, False),
    ],
)
def test_only_dropout_that_is_asked_again_and_again_is_meant(asks: Callable[..., None], meant: bool) -> None:
    model = net(dropout=0.3)
    optimiser = torch.optim.SGD(model.parameters(), 0.05)

    def run() -> None:
        model.train()
        for _ in range(4):
            for batch in batches(12):
                optimiser.zero_grad()
                loss_of(model, batch).backward()
                optimiser.step()
            with torch.no_grad():
                asks(model, lambda: (x.clone() for x, _ in batches(6)))

    assert names(watch(model, optimiser, run)) == ([] if meant else ["validating-in-train-mode"])
