"""Training and evaluation mode in a loop: what is forgotten, and what is only unusual."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import swa_utils

from tests.checks.loops import batches, loss_of, names, net, sgd, train, watch


def validate(model, *, mode: bool | None, gradients: bool, count: int = 5) -> None:
    if mode is not None:
        model.train(mode)
    with torch.set_grad_enabled(gradients):
        for batch in batches(count):
            functional.cross_entropy(model(batch[0]), batch[1])


def epochs(model, optimiser, *, mode: bool | None = False, gradients: bool = False, back: bool = True, count: int = 4):
    def run() -> None:
        model.train()
        for _ in range(count):
            if back:
                model.train()
            for batch in batches(12):
                optimiser.zero_grad()
                loss_of(model, batch).backward()
                optimiser.step()
            validate(model, mode=mode, gradients=gradients)

    return run


def test_a_training_that_stays_in_evaluation_mode_is_named() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, back=False))
    assert names(report) == ["training-in-eval-mode"]
    assert report.findings[0].first_step == 12


def test_a_model_whose_layers_have_no_mode_may_stay_in_evaluation_mode() -> None:
    model = net()
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, back=False))
    assert not names(report)
    assert "training-in-eval-mode" in report.clear


def test_validation_in_its_own_mode_is_healthy() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser))
    assert not names(report)
    assert {"training-in-eval-mode", "validating-in-train-mode", "validation-builds-graph"} <= set(report.clear)


def test_batch_norm_that_is_stopped_on_purpose_is_healthy() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)

    def run() -> None:
        model.train()
        for i, batch in enumerate(batches(40)):
            if i == 20:
                model[1].eval()
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run, every=1))


def test_a_part_that_was_left_in_evaluation_mode_is_named() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(net(dropout=0.3, norm=True), nn.Dropout(0.1), nn.Linear(10, 10))
    optimiser = sgd(model)

    def run() -> None:
        model.train()
        for i, batch in enumerate(batches(40)):
            if i == 20:
                model[0].eval()
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert names(watch(model, optimiser, run, every=1)) == ["training-in-eval-mode"]


@pytest.mark.parametrize("by_gradient", [True, False])
def test_a_frozen_trunk_may_rest(by_gradient: bool) -> None:
    trunk, head = net(dropout=0.3, norm=True), nn.Sequential(nn.Linear(10, 10), nn.Dropout(0.1), nn.Linear(10, 10))
    model = nn.Sequential(trunk, head)
    if by_gradient:
        trunk.requires_grad_(False)
    optimiser = sgd(head)

    def run() -> None:
        model.eval()
        head.train()
        for batch in batches(40):
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_attacks_made_in_evaluation_mode_are_healthy() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)

    def run() -> None:
        for x, y in batches(40):
            model.eval()
            x = x.clone().requires_grad_()
            for _ in range(4):
                (slope,) = torch.autograd.grad(functional.cross_entropy(model(x), y), x)
                x = (x + 0.01 * slope.sign()).detach().requires_grad_()
            model.train()
            optimiser.zero_grad()
            loss_of(model, (x.detach(), y)).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


@pytest.mark.parametrize("layers", [{"dropout": 0.3}, {"norm": True}])
def test_validation_in_training_mode_is_named(layers: dict) -> None:
    model = net(**layers)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, mode=None))
    assert names(report) == ["validating-in-train-mode"], report.to_text()


def test_one_validation_after_the_training_counts() -> None:
    model = net(dropout=0.3)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, mode=None, count=1))
    assert names(report) == ["validating-in-train-mode"]


def test_a_model_without_modes_may_be_validated_in_any() -> None:
    model = net()
    optimiser = sgd(model)
    assert not names(watch(model, optimiser, epochs(model, optimiser, mode=None)))


def test_a_teacher_within_the_step_is_no_validation() -> None:
    model = net(dropout=0.3)
    optimiser = sgd(model)

    def run() -> None:
        for x, y in batches(40):
            with torch.no_grad():
                views = [model(x + 0.01 * i) for i in range(3)]
            optimiser.zero_grad()
            (functional.cross_entropy(model(x), y) + (model(x) - views[0]).square().mean()).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_asking_the_same_again_and_again_is_no_validation() -> None:
    model = net(dropout=0.3)
    optimiser = sgd(model)
    (probe,) = (x for x, _ in batches(1))

    def run() -> None:
        for _ in range(4):
            train(model, optimiser, 10)
            with torch.no_grad():
                torch.stack([model(probe) for _ in range(20)]).std(0)

    assert not names(watch(model, optimiser, run))


def test_batch_norm_may_be_calibrated_anew() -> None:
    model = net(norm=True)
    optimiser = sgd(model)

    def run() -> None:
        for _ in range(4):
            train(model, optimiser, 10)
            with torch.no_grad():
                model(next(batches(1))[0])
            swa_utils.update_bn([x for x, _ in batches(6)], model)

    assert not names(watch(model, optimiser, run))


@pytest.mark.parametrize("mode", [None, False])
def test_a_validation_with_autograd_on_is_a_hint(mode: bool | None) -> None:
    model = net(dropout=0.3 if mode is False else 0.0)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, mode=mode, gradients=True))
    assert names(report) == ["validation-builds-graph"]
    assert report.status == "healthy"
    assert report.findings[0].location is not None
    assert report.findings[0].location.text.startswith("def validate(")


def test_several_views_for_one_backward_are_no_validation() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for i, (x, y) in enumerate(batches(40)):
            scores = [model(x + 0.01 * view) for view in range(4 if i % 8 else 6)]
            optimiser.zero_grad()
            sum(functional.cross_entropy(s, y) for s in scores).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_episodes_of_many_calls_are_no_validation() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimiser = sgd(model)

    def run() -> None:
        for episode in range(30):
            logs = [model(torch.randn(4)).log_softmax(0)[0] for _ in range(5 + episode % 7)]
            optimiser.zero_grad()
            (-sum(logs) / len(logs)).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))
