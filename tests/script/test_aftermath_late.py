"""What goes wrong with data in the middle of a training is found, and what changes by design is not."""

from collections.abc import Callable

import torch

from sleuth.core.report import Report
from tests.material import digits
from tests.script.looking_back import ask, looked_back, names, train

STEPS = 480
X, Y = (torch.as_tensor(part) for part in digits())
ORDER = torch.randperm(len(X), generator=torch.Generator().manual_seed(2))
X, Y = X[ORDER], Y[ORDER]
CUT = 1400

Change = Callable[[torch.Tensor, torch.Tensor, float], tuple[torch.Tensor, torch.Tensor]]


def stream(change: Change) -> Report:
    """`change` is told how much of the training has gone by."""

    def loop(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for step in range(STEPS):
            rows = torch.randint(0, CUT, (32,))
            train(model, optimiser, iter([change(X[rows], Y[rows], step / STEPS)]))
            if step % 60 == 59:
                ask(model, iter([(X[CUT:], Y[CUT:])]))

    return looked_back(loop, 64, 10)


def test_inputs_that_leave_their_scale_are_found_with_the_step() -> None:
    finding = stream(lambda x, y, gone: (x * (1 + 40 * max(0.0, gone - 0.4)), y)).culprits[0].finding
    assert finding.name == "train-val-shift"
    assert 0.35 * STEPS < finding.first_step < 0.6 * STEPS


def test_labels_that_come_off_their_inputs_are_found() -> None:
    finding = stream(lambda x, y, gone: (x, y.roll(1) if gone > 0.5 else y)).culprits[0].finding
    assert finding.name == "labels-misaligned"
    assert finding.first_step > 0.5 * STEPS


def test_samples_that_end_as_validation_is_are_not_accused_whatever_came_first() -> None:
    assert not names(stream(lambda x, y, gone: (x * min(1.0, 0.1 + 2 * gone), y)))


def test_another_task_is_not_taken_for_labels_of_other_samples() -> None:
    assert "labels-misaligned" not in names(stream(lambda x, y, gone: (x, 9 - y if gone > 0.5 else y)))


def test_inputs_that_fall_silent_are_not_taken_for_labels_of_other_samples() -> None:
    found = names(stream(lambda x, y, gone: (0.01 * torch.rand_like(x) if gone > 0.5 else x, y)))
    assert "train-val-shift" in found
    assert "labels-misaligned" not in found
