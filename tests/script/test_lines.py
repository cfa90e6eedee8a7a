"""The line that a finding names is the one to change: each script marks it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import SGD, Adam, lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

from tests.script.test_discovery import X, Y, batches, heard

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")
SCRIPTS: dict[str, tuple[str, Callable[[], None], float]] = {}


def script(illness: str, *, budget: float = 0) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(function: Callable[[], None]) -> Callable[[], None]:
        SCRIPTS[function.__name__] = (illness, function, budget)
        return function

    return note


def fit(model: nn.Module, loss: Callable[..., torch.Tensor], optimiser=None, steps: int = 24, target=lambda y: y) -> None:
    optimiser = optimiser or SGD(model.parameters(), 0.05)
    for x, y in batches(steps):
        optimiser.zero_grad()
        loss(model(x), target(y)).backward()
        optimiser.step()


class Trunk(nn.Module):
    def __init__(self, out: int) -> None:
        super().__init__()
        self.lift = nn.Linear(64, 24)
        self.head = nn.Linear(24, out)


class Chained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(64, 24)
        self.tail = nn.Sequential(
            nn.ReLU(),
            nn.Linear(24, 10),
            nn.Softmax(dim=-1),  # a layer in a container: change this
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.tail(self.body(x))


@script("double-softmax")
def a_layer_in_a_container() -> None:
    fit(Chained(), nn.CrossEntropyLoss())


def squashed(scores: torch.Tensor) -> torch.Tensor:
    return scores.sigmoid()  # a function that forward calls: change this


class Helped(Trunk):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.lift(x).relu()
        return squashed(self.head(h)).flatten()


@script("double-softmax")
def a_function_that_forward_calls() -> None:
    fit(Helped(1), functional.binary_cross_entropy_with_logits, target=lambda y: (y > 4).float())


class Raw(Trunk):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.head(self.lift(x).relu())  # raw scores: change this
        return scores


@script("missing-log-softmax")
def raw_scores() -> None:
    fit(Raw(10), nn.NLLLoss())


class Column(Trunk):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        h = self.lift(x).tanh()
        return {"value": self.head(h)}  # a column: change this


@script("loss-broadcasts")
def a_column() -> None:
    fit(Column(1), lambda out, y: functional.l1_loss(out["value"], y), target=lambda y: y.float())


@script("loss-broadcasts")
def a_column_out_of_a_container() -> None:
    model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 1))
    optimiser = SGD(model.parameters(), 0.01)
    for x, y in batches(12):
        optimiser.zero_grad()
        functional.mse_loss(model(x), y.float()).backward()  # a column out of a container: change this
        optimiser.step()


@script("wrong-loss-for-task")
def a_loss_that_is_an_object() -> None:
    judge = nn.CrossEntropyLoss()  # a loss that is an object: change this
    fit(nn.Linear(64, 10), judge, target=lambda y: torch.linspace(-2, 3, 320).reshape(32, 10))


def tower(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(width, 10))


@script("forward-fails")
def a_size_that_comes_from_the_caller() -> None:
    fit(tower(width=32), functional.cross_entropy)  # a size that comes from the caller: change this


class Bag(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, 8)
        self.head = nn.Linear(8, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids).mean(1))


@script("token-out-of-vocabulary")
def a_table_that_is_too_short() -> None:
    ids = (X * 15).long().clamp(0, 15)
    symbols = int(ids.max())  # a table that is too short: change this
    model = Bag(symbols)
    optimiser = Adam(model.parameters())
    for rows in torch.arange(len(ids)).split(64):
        optimiser.zero_grad()
        functional.cross_entropy(model(ids[rows]), Y[rows]).backward()
        optimiser.step()


class Nine(Trunk):
    def __init__(self, classes: int = 9) -> None:  # a default: change this
        super().__init__(24)
        self.answer = nn.Linear(24, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.answer(self.head(self.lift(x).relu()).relu())


@script("target-out-of-range")
def a_default() -> None:
    fit(Nine(), functional.cross_entropy)


@script("optimiser-setting-odd")
def an_optimiser() -> None:
    model = nn.Linear(64, 10)
    fit(model, functional.cross_entropy, Adam(model.parameters(), eps=1e3))  # an optimiser: change this


@script("parameters-not-optimised")
def a_head_that_came_late() -> None:
    model = Nine(12)
    optimiser = Adam(model.parameters())
    model.answer = nn.Linear(24, 10)  # a head that came late: change this
    fit(model, functional.cross_entropy, optimiser)


@script("parameters-not-optimised")
def an_optimiser_of_a_part() -> None:
    model = Nine(10)
    part = [*model.lift.parameters(), *model.answer.parameters()]
    fit(model, functional.cross_entropy, Adam(part))  # an optimiser of a part: change this


@script("learning-rate-decayed-away")
def a_schedule_that_has_run_out() -> None:
    model = nn.Linear(64, 10)
    optimiser = SGD(model.parameters(), 0.1)
    schedule = lr_scheduler.PolynomialLR(optimiser, total_iters=50)  # a schedule that has run out: change this
    for x, y in batches(260):
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        schedule.step()


def noisy() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 10))


class Runner:
    def __init__(self) -> None:
        self.net = noisy()
        self.optimiser = SGD(self.net.parameters(), 0.05)

    def learn(self) -> None:
        self.net.train()
        fit(self.net, functional.cross_entropy, self.optimiser, 12)

    def score(self) -> float:
        self.net.train()  # a mode for the wrong thing: change this
        with torch.inference_mode():
            return sum(float((self.net(x).argmax(1) == y).sum()) for x, y in batches(4))


@script("validating-in-train-mode")
def a_mode_for_the_wrong_thing() -> None:
    runner = Runner()
    for _ in range(4):
        runner.learn()
        runner.score()


def peek(model: nn.Module) -> None:
    model.eval()  # a mode that is never taken back: change this
    with torch.no_grad():
        for x, _ in batches(2):
            model(x)


@script("training-in-eval-mode")
def a_mode_that_is_never_taken_back() -> None:
    model = noisy()
    optimiser = SGD(model.parameters(), 0.05)
    for _ in range(4):
        fit(model, functional.cross_entropy, optimiser, 10)
        peek(model)


def graded(model: nn.Module) -> int:  # a function that only validates: change this
    right = 0
    for x, y in batches(4):
        right += int((model(x).argmax(1) == y).sum())
    return right


@script("validation-builds-graph")
def a_function_that_only_validates() -> None:
    model = nn.Linear(64, 10)
    optimiser = SGD(model.parameters(), 0.05)
    for _ in range(4):
        fit(model, functional.cross_entropy, optimiser, 10)
        graded(model)


@script("hidden-state-not-detached")
def a_state_under_another_name() -> None:
    cell, memory = nn.GRUCell(64, 10), torch.zeros(32, 10)
    optimiser = SGD(cell.parameters(), 0.05)
    for x, y in batches(30):
        optimiser.zero_grad()
        after = cell(x, memory)
        functional.cross_entropy(after, y).backward()
        optimiser.step()
        memory = after  # a state under another name: change this


def tilt(layer: nn.Module) -> None:
    for weight in layer.parameters():
        if weight.dim() == 1:
            nn.init.constant_(weight, -30.0)  # values of ones own: change this


@script("dead-units")
def values_of_ones_own() -> None:
    hidden = nn.Linear(64, 24)
    tilt(hidden)
    fit(nn.Sequential(hidden, nn.ReLU(), nn.Linear(24, 10)), functional.cross_entropy)


def stairs() -> Iterator[nn.Module]:
    for step in range(9):
        yield nn.Linear(64 if step == 0 else 32, 32)
        yield nn.Sigmoid()  # layers out of a generator: change this
    yield nn.Linear(32, 10)


@script("vanishing-gradients")
def layers_out_of_a_generator() -> None:
    torch.manual_seed(0)
    fit(nn.Sequential(*stairs()), functional.cross_entropy, steps=60)


@script("data-not-shuffled", budget=1)
def a_loader() -> None:
    order = Y.argsort()
    loader = DataLoader(TensorDataset(X[order], Y[order]), batch_size=64)  # a loader: change this
    model = nn.Linear(64, 10)
    optimiser = SGD(model.parameters(), 0.05)
    for x, y in loader:
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_line_to_change_is_named(name: str, tmp_path: Path) -> None:
    illness, function, budget = SCRIPTS[name]
    report = heard(function, tmp_path, budget=budget).main().report
    found = next((f for f in report.findings if f.name == illness), None)
    assert found is not None, [f.name for f in report.findings]
    assert found.location is not None
    assert found.location.text.endswith(f"# {name.replace('_', ' ')}: change this"), found
