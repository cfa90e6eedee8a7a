"""A loss that leaps back to where it began, again and again; and losses that only look like it."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth import Report
from tests.material import digits

X, Y = (torch.as_tensor(a) for a in digits())
# One half of the digits can be learned, the other half has its labels shuffled: hard and easy data by turns.
HARD = torch.arange(len(Y)) < len(Y) // 2
SHUFFLED = torch.where(HARD, Y[torch.randperm(len(Y), generator=torch.Generator().manual_seed(0))], Y)

Data = Callable[[int], tuple[torch.Tensor, torch.Tensor]]


def some(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randint(0, len(X), (32,))
    return X[rows], Y[rows]


def watch(steps: int, data: Data = some, after: Callable[[int, nn.Module], None] = lambda step, model: None) -> Report:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    with sleuth.watch(model, optimiser, directory=None, quiet=True, select=["loss-oscillates"]) as w:
        for step in range(steps):
            x, y = data(step)
            optimiser.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            after(step, model)
    return w.report()


def reset_every(period: Callable[[int], int]) -> Callable[[int, nn.Module], None]:
    """Takes the model back to its start; `period` says after how many steps the next time comes."""
    kept: list[dict[str, torch.Tensor]] = []
    last = [0]

    def after(step: int, model: nn.Module) -> None:
        if not kept:
            kept.append(copy.deepcopy(model.state_dict()))
        if step - last[0] >= period(last[0]):
            last[0] = step
            model.load_state_dict(kept[0])

    return after


def test_a_model_that_is_taken_back_at_equal_intervals_oscillates_and_the_steps_are_not_to_blame() -> None:
    (finding,) = watch(480, after=reset_every(lambda last: 60)).findings
    assert finding.numbers["every"] == 60
    assert "every 60 steps" in finding.fix
    assert finding.first_step is None


def test_leaps_that_keep_no_time_may_be_the_steps_own() -> None:
    (finding,) = watch(700, after=reset_every(lambda last: 40 + 13 * last % 60)).findings
    assert finding.first_step is not None


@pytest.mark.parametrize("tasks", [3, 5])
def test_some_new_tasks_by_design_do_not_oscillate(tasks: int) -> None:
    def data(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = some(step)
        return x, (y + step // (600 // tasks)) % 10

    assert not watch(600, data).findings


def test_some_hard_batches_at_equal_intervals_do_not_make_a_loss_oscillate() -> None:
    def data(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.nonzero(HARD if step % 70 >= 60 else ~HARD).squeeze(1)
        rows = rows[torch.randint(0, len(rows), (32,))]
        return X[rows], SHUFFLED[rows]

    assert not watch(700, data).findings


def test_a_training_that_gets_lower_each_time_gets_somewhere() -> None:
    assert not watch(700, after=reset_every(lambda last: 30 + last // 5)).findings
