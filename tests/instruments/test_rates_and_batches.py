"""A rate that is found works; a batch is learned by heart unless something is broken."""

import pytest
import torch
from torch import nn

import sleuth
from tests.instruments.leaving import digit_loader, left_as_it_was, mlp


def test_the_rate_that_is_found_trains_better_than_one_far_off() -> None:
    model = mlp(64, 32, 10)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-5)
    loader, generator = digit_loader()
    with left_as_it_was(model, optimiser, generator):
        found = sleuth.find_lr(model, loader, loss=nn.CrossEntropyLoss(), optimizer=optimiser)
    assert found.current == 1e-5
    assert found.suggested is not None
    assert 1e-2 < found.suggested < 5
    assert len(found.rates) == len(found.losses) == len(found.smoothed)
    assert "Suggested" in str(found)


def test_a_loss_that_cannot_fall_gets_no_suggestion() -> None:
    model = mlp(64, 32, 10)
    loader, _ = digit_loader()
    found = sleuth.find_lr(
        model, loader, loss=lambda out, y: 0.0 * out.sum() + 1.0, optimizer=torch.optim.SGD(model.parameters(), 0.1)
    )
    assert found.suggested is None
    assert "No learning rate" in str(found)


def test_a_batch_is_learned_or_the_rate_is_blamed() -> None:
    model = mlp(64, 32, 10)
    loader, _ = digit_loader()
    criterion = nn.CrossEntropyLoss()
    good = sleuth.overfit_batch(model, loader, loss=criterion, optimizer=torch.optim.Adam(model.parameters(), 1e-2))
    assert good.verdict == "learned"
    assert not good.rate_is_wrong
    slow = sleuth.overfit_batch(model, loader, loss=criterion, optimizer=torch.optim.SGD(model.parameters(), 1e-6))
    assert slow.verdict == "learned"
    assert slow.rate_is_wrong
    assert "the rate is to blame" in str(slow)


@pytest.mark.long
def test_a_model_that_blurs_its_inputs_cannot_learn_a_batch() -> None:
    class Blurred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(1, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(0 * x.mean(1, keepdim=True))

    model = Blurred()
    loader, _ = digit_loader()
    found = sleuth.overfit_batch(model, loader, loss=nn.CrossEntropyLoss(), optimizer=torch.optim.Adam(model.parameters(), 1e-2))
    assert found.verdict in ("half", "not")
    assert not found.learned
    assert found.left > 0.3


def test_impossible_settings_are_refused() -> None:
    loader, _ = digit_loader()
    with pytest.raises(sleuth.UnusableInput, match="steps=3"):
        sleuth.find_lr(mlp(64, 10), loader, loss=nn.CrossEntropyLoss(), steps=3)
