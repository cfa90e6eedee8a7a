"""Optimisers that come and go."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.checks.loops import STEPS, batches, loss_of, names, net, sgd, steps_of, train, watch
from tests.material import digits


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), 1e-3)


def loader() -> DataLoader:
    x, y = (torch.as_tensor(a[:320]) for a in digits())
    return DataLoader(TensorDataset(x, y), 32, shuffle=True)


def rebuilding(model, make, *, count: int = 6, passes: int = 1, between=lambda model: None, carry: bool = False):
    def run() -> None:
        data, old = loader(), None
        for _ in range(count):
            optimiser = make(model)
            if carry and old is not None:
                optimiser.load_state_dict(old.state_dict())
            for _ in range(passes):
                for batch in data:
                    optimiser.zero_grad()
                    loss_of(model, batch).backward()
                    optimiser.step()
            old = optimiser
            between(model)

    return run


@pytest.mark.parametrize("given", [True, False])
def test_an_optimiser_made_anew_every_epoch_is_named(given: bool) -> None:
    model = net()
    report = watch(model, [adam(model)] if given else [], rebuilding(model, adam))
    assert names(report) == ["optimiser-rebuilt"], report.to_text()
    assert report.findings[0].location is not None
    assert "torch.optim.Adam(" in report.findings[0].location.text


def test_an_optimiser_made_anew_every_step_is_named() -> None:
    model = net()

    def run() -> None:
        for batch in batches():
            optimiser = sgd(model, momentum=0.9)
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert names(watch(model, None, run)) == ["optimiser-rebuilt"]


def reset(model: nn.Module) -> None:
    for layer in model:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"make": sgd}, id="there is no state to lose"),
        pytest.param({"make": adam, "count": 2}, id="a second phase"),
        pytest.param({"make": adam, "passes": 3}, id="phases of several epochs"),
        pytest.param({"make": adam, "between": reset}, id="folds that begin anew"),
        pytest.param({"make": adam, "carry": True}, id="the state is handed on"),
    ],
)
def test_a_new_optimiser_may_be_meant(options: dict) -> None:
    model = net()
    report = watch(model, None, rebuilding(model, **options))
    assert not names(report), report.to_text()


def test_lbfgs_may_be_started_anew() -> None:
    model = net()

    def run() -> None:
        for batch in batches(8):
            optimiser = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)

            def closure(optimiser=optimiser, batch=batch) -> torch.Tensor:
                optimiser.zero_grad()
                loss = loss_of(model, batch)
                loss.backward()
                return loss

            optimiser.step(closure)

    assert not names(watch(model, None, run))


def test_layers_that_are_unfrozen_one_by_one_may_have_new_optimisers() -> None:
    model = nn.Sequential(*[layer for _ in range(5) for layer in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 10))

    def run() -> None:
        for stage in range(1, 6):
            optimiser = torch.optim.Adam([p for layer in model[-2 * stage :] for p in layer.parameters()], 1e-3)
            for batch in loader():
                model.zero_grad()
                loss_of(model, batch).backward()
                optimiser.step()

    assert not names(watch(model, None, run))


def test_optimisers_that_take_turns_are_healthy() -> None:
    model = net()
    pair = [adam(model), sgd(model, momentum=0.9)]

    def run() -> None:
        for i, batch in enumerate(batches(40)):
            model.zero_grad()
            loss_of(model, batch).backward()
            pair[i % 2].step()

    assert not names(watch(model, None, run))


def test_optimisers_are_met_without_being_given() -> None:
    model = net()
    optimiser = adam(model)
    steps = steps_of(model, None, lambda: train(model, optimiser))
    assert len(steps) == STEPS
    assert {step.calls for step in steps} == {("zero_grad", "forward", "backward", "step"), ("forward", "backward", "step")}
    assert all(step.loss is not None for step in steps)


def test_a_backward_is_heard_though_the_optimiser_holds_another_model() -> None:
    model = net()
    optimiser = adam(net())
    steps = steps_of(model, optimiser, lambda: train(model, optimiser))
    assert {step.calls[-1] for step in steps} == {"step-without-gradient"}
    assert all("backward" in step.calls and step.loss is not None for step in steps)


def test_no_optimiser_is_kept_alive() -> None:
    model = net()
    gone: list[weakref.ref] = []

    def run() -> None:
        for _ in range(4):
            optimiser = adam(model)
            train(model, optimiser, 4)
            gone.append(weakref.ref(optimiser))
        del optimiser
        gc.collect()
        assert not any(ref() for ref in gone)

    watch(model, [adam(model)], run)
    watch(model, None, run)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_step_is_not_missed() -> None:
    torch._dynamo.reset()
    model = net()
    optimiser = adam(model)

    @torch.compile(backend="eager")
    def step() -> None:
        optimiser.step()

    def run() -> None:
        for batch in batches(12):
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            step()

    report = watch(model, optimiser, run)
    torch._dynamo.reset()
    assert not names(report), report.to_text()
