"""States that go from step to step, and exceptions that leave the loop."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from tests.checks.held_graphs import MINE, STEPS, X, batches, mlp, named_by_exception, only, plainly, report_of


class Reader(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], keeps: bool = False) -> None:
        super().__init__()
        self.cell, self.head = kind(8, 16, batch_first=True), nn.Linear(16, 10)
        self.keeps, self.state = keeps, None

    def forward(self, x: torch.Tensor, state=None):
        output, state = self.cell(x, self.state if self.keeps else state)
        self.state = state if self.keeps else None
        return (self.head(output[:, -1]), state) if not self.keeps else self.head(output[:, -1])


def reads(steps: int = 4, retain: bool = False, cut: Callable = lambda state: state) -> Callable[..., None]:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        hidden = None
        for x, y in batches(steps):
            optimiser.zero_grad()
            output, hidden = model(x.view(-1, 8, 8), cut(hidden) if hidden is not None else None)
            functional.cross_entropy(output, y).backward(retain_graph=retain)
            optimiser.step()

    return run


@pytest.mark.parametrize("retain", [False, True], ids=["used up", "weights changed in place"])
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM])
def test_a_state_that_is_not_detached_explains_the_exception(kind: type[nn.RNNBase], retain: bool) -> None:
    assert named_by_exception(reads(retain=retain), Reader(kind)) == ["hidden-state-not-detached", "backward-fails"]


def test_the_state_and_the_call_are_named() -> None:
    model = Reader(nn.LSTM)
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    watch = sleuth.watch(model, optimiser, directory=None, quiet=True, select=MINE)
    with pytest.raises(RuntimeError), watch:
        hidden = None
        for x, y in batches(3):
            output, hidden = model(x.view(-1, 8, 8), hidden)
            functional.cross_entropy(output, y).backward()
            optimiser.step()
    found = watch.report().culprits[0].finding
    assert found.where == "hidden"
    assert found.location.text == "output, hidden = model(x.view(-1, 8, 8), hidden)"
    assert "hidden = hidden.detach()" in found.fix


def test_a_state_that_a_layer_keeps_for_itself_is_found() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for x, y in batches(4):
            functional.cross_entropy(model(x.view(-1, 8, 8)), y).backward()
            optimiser.step()

    assert named_by_exception(run, Reader(nn.GRU, keeps=True)) == ["hidden-state-not-detached", "backward-fails"]


def test_the_state_of_a_model_that_is_called_by_its_parts_is_found() -> None:
    cell, head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 10)

    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        memory = torch.zeros(1, 32, 16)
        for x, y in batches(4):
            optimiser.zero_grad()
            output, memory = cell(x.view(-1, 8, 8), memory)
            functional.cross_entropy(head(output[:, -1]), y).backward()
            optimiser.step()

    model = nn.ModuleList([cell, head])
    assert named_by_exception(run, model) == ["hidden-state-not-detached", "backward-fails"]


def test_a_total_of_a_model_that_is_called_by_its_parts_is_no_state() -> None:
    cell, head = nn.Linear(64, 16), nn.Linear(16, 10)

    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        total = torch.zeros(())
        for x, y in batches(4):
            optimiser.zero_grad()
            total = total + functional.cross_entropy(head(cell(x).relu()), y)
            total.backward()
            optimiser.step()

    assert named_by_exception(run, nn.ModuleList([cell, head])) == ["graph-retained", "backward-fails"]


def test_a_loss_that_goes_backward_twice_is_neither() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for x, y in batches(2):
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            loss.backward()

    assert named_by_exception(run, mlp()) == ["backward-fails"]


def test_an_exception_that_the_user_catches_is_heard_all_the_same() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        try:
            reads()(model, optimiser)
        except RuntimeError:
            return

    assert only(report_of(run, Reader(nn.GRU))).name == "hidden-state-not-detached"


class OldFashioned(torch.optim.SGD):
    """Writes past the versions that backward looks at, as optimisers did for years."""

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.add_(parameter.grad, alpha=-group["lr"])


def test_a_graph_that_grows_with_every_step_is_named_without_an_exception() -> None:
    model = Reader(nn.GRU)
    found = only(report_of(reads(80, retain=True), model, OldFashioned(model.parameters(), 1e-3)))
    assert (found.name, found.where) == ("hidden-state-not-detached", "hidden")
    assert found.numbers["steps"] >= 24


def test_a_state_that_is_detached_is_healthy() -> None:
    report = report_of(reads(STEPS, cut=lambda state: tuple(part.detach() for part in state)), Reader(nn.LSTM))
    assert not report.findings
    assert "hidden-state-not-detached" in report.clear


def test_a_running_total_that_goes_backward_is_no_recurrent_state() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        total = torch.zeros(())
        for x, y in batches(4):
            total = total + functional.cross_entropy(model(x), y)
            total.backward()
            optimiser.step()

    assert named_by_exception(run, mlp()) == ["graph-retained", "backward-fails"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, KeyError("x"), RuntimeError("enough"), StopIteration])
def test_an_exception_of_the_users_own_is_no_finding(error: BaseException) -> None:
    training = SimpleNamespace(model=mlp())
    optimiser = torch.optim.Adam(training.model.parameters())
    kind = error if isinstance(error, type) else type(error)
    watch = sleuth.watch(training.model, optimiser, directory=None, quiet=True, select=MINE)
    with pytest.raises(kind), watch:
        plainly(lambda *_: None, 5)(training.model, optimiser)
        raise error
    assert not watch.report().findings


def test_a_batch_that_does_not_fit_the_model_is_explained() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        plainly(lambda *_: None, 5)(model, optimiser)
        model(X[:4, :10])

    assert named_by_exception(run, mlp()) == ["forward-fails"]
