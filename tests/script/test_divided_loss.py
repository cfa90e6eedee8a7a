"""A loss that is divided because several backwards make up a step: shown is what the user computed, whoever divided it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sleuth.core.observation import Step
from tests.script.test_discovery import X, Y, batches, heard, mlp, stored

PARTS = 4
Divide = Callable[[torch.Tensor], torch.Tensor]


def losses_shown_and_computed(divide: Divide, folder: Path) -> tuple[list[float], list[float]]:
    computed: list[float] = []

    def script() -> None:
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for number, (x, y) in enumerate(batches(8 * PARTS)):
            loss = functional.cross_entropy(model(x), y)
            computed.append(loss.item())
            divide(loss).backward()
            if number % PARTS == PARTS - 1:
                optimiser.step()
                optimiser.zero_grad()

    session = heard(script, folder)
    means = [sum(computed[i : i + PARTS]) / PARTS for i in range(0, len(computed), PARTS)]
    return [step.loss for step in stored(session, Step)], means


@pytest.mark.parametrize("divide", [lambda loss: loss / PARTS, lambda loss: loss * (1 / PARTS)], ids=["divided", "multiplied"])
def test_shown_is_the_loss_before_it_was_divided(divide: Divide, tmp_path: Path) -> None:
    shown, computed = losses_shown_and_computed(divide, tmp_path)
    assert shown == pytest.approx(computed, rel=1e-5)


@pytest.mark.parametrize("factor", [0.5, 3.0, -1.0])
def test_another_factor_belongs_to_the_users_loss(factor: float, tmp_path: Path) -> None:
    shown, computed = losses_shown_and_computed(lambda loss: loss * factor, tmp_path)
    assert shown == pytest.approx([factor * loss for loss in computed], rel=1e-5)


def test_accelerate_divides_and_the_users_own_loss_is_shown(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    computed: list[float] = []

    def script() -> None:
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=PARTS)
        model: nn.Module = mlp()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(X[:1024], Y[:1024]), batch_size=32, shuffle=True)
        model, optimiser, loader = accelerator.prepare(model, optimiser, loader)
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = functional.cross_entropy(model(x), y)
                computed.append(loss.item())
                accelerator.backward(loss)
                optimiser.step()
                optimiser.zero_grad()

    session = heard(script, tmp_path)
    shown = [step.loss for step in stored(session, Step)]
    assert shown == pytest.approx([sum(computed[i : i + PARTS]) / PARTS for i in range(0, len(computed), PARTS)], rel=1e-5)
    assert not session.told[0].report.findings
