"""After an examination everything of the user's is as it was, to the last bit."""

import copy
import random
import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from sleuth import Subject, examine
from tests.material import digits

BUDGET_SECONDS = 40


class Augmented(Dataset):
    """Adds noise from a generator of its own, as an augmentation would."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        self.x, self.y = digits()

    def __len__(self) -> int:
        return 320

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        noise = self.rng.normal(0, 0.01, 64) + random.random() * 0.01
        return (self.x[i] + noise).astype(np.float32), int(self.y[i])


class Net(nn.Module):
    """Normalisation, dropout, a frozen part in eval mode, a counter in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU())
        self.body = nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(inplace=True), nn.Dropout(0.2))
        self.head = nn.Linear(32, 10)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.head(self.body(self.trunk(x)))


def make(model: nn.Module) -> Subject:
    loader = DataLoader(Augmented(), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(5))
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    loss = nn.CrossEntropyLoss()
    for x, y in loader:  # so that there are gradients, moments and running statistics to lose
        optimiser.zero_grad()
        loss(model(x), y).backward()
        optimiser.step()
    return Subject(model, loader, loss, optimiser, validation=loader, name="net")


def state(subject: Subject) -> dict[str, Any]:
    model, optimiser, loader = subject.model, subject.optimizer, subject.train
    return {
        "weights": {n: t.clone() for n, t in model.state_dict().items()},
        "gradients": {n: None if p.grad is None else p.grad.clone() for n, p in model.named_parameters()},
        "gradient objects": [id(p.grad) for p in model.parameters()],
        "flags": [(p.requires_grad, id(p)) for p in model.parameters()],
        "modes": [m.training for m in model.modules()],
        "attributes": [sorted(vars(m)) for m in model.modules()],
        "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()],
        "counter": getattr(model, "calls", None),
        "optimiser": copy.deepcopy(optimiser.state_dict()),
        "optimiser holds": [id(p) for g in optimiser.param_groups for p in g["params"]],
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),
        "python": random.getstate(),
        "loader": loader.generator.get_state(),
        "dataset": loader.dataset.rng.bit_generator.state,
        "grad mode": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def assert_equal(before: Any, after: Any, path: str = "") -> None:
    if isinstance(before, torch.Tensor):
        assert torch.equal(before, after), path
    elif isinstance(before, np.ndarray):
        assert np.array_equal(before, after), path
    elif isinstance(before, dict):
        assert before.keys() == after.keys(), path
        for key in before:
            assert_equal(before[key], after[key], f"{path}/{key}")
    elif isinstance(before, list | tuple):
        assert len(before) == len(after), path
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            assert_equal(a, b, f"{path}/{i}")
    else:
        assert before == after, path


def examined(subject: Subject) -> Any:
    return examine(subject, budget_seconds=BUDGET_SECONDS, progress=False)


def test_nothing_is_changed_by_an_examination() -> None:
    model = Net()
    model.trunk.eval().requires_grad_(False)
    subject = make(model)
    before = state(subject)
    report = examined(subject)
    assert_equal(before, state(subject))
    assert report.steps > 0


def test_nothing_is_changed_in_a_model_that_cannot_be_copied() -> None:
    model = Net()
    model.lock = threading.Lock()
    subject = make(model)
    before = state(subject)
    before.pop("counter")
    report = examined(subject)
    after = state(subject)
    after.pop("counter")
    assert_equal(before, after)
    assert any("cannot be copied" in note for note in report.notes)


def test_gradients_are_kept_when_the_loss_holds_the_original_model() -> None:
    subject = make(Net())
    model = subject.model

    def penalised(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output, target) + 1e-4 * sum(p.square().sum() for p in model.parameters())

    subject = Subject(model, subject.train, penalised, subject.optimizer, name="penalised")
    before = state(subject)
    examined(subject)
    assert_equal(before, state(subject))


def test_training_goes_on_as_if_nothing_had_been_examined() -> None:
    def train(look: bool) -> dict[str, torch.Tensor]:
        torch.manual_seed(1)
        random.seed(1)
        subject = make(Net())
        if look:
            examined(subject)
        for x, y in subject.train:
            subject.optimizer.zero_grad()
            subject.loss(subject.model(x), y).backward()
            subject.optimizer.step()
        return subject.model.state_dict()

    assert_equal(train(look=False), train(look=True))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_changed_when_the_users_code_breaks_off(error: type[BaseException]) -> None:
    class Fragile(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if Fragile.armed and self.calls > 40:
                raise error("broken off")
            return super().forward(x)

    Fragile.armed = False
    subject = make(Fragile())
    subject.model.calls = 0
    before = state(subject)
    Fragile.armed = True
    report = examined(subject)
    assert_equal(before, state(subject))
    if error is KeyboardInterrupt:
        assert any("interrupted" in note for note in report.notes)
        assert "the examination was interrupted" in report.not_examined.values()
