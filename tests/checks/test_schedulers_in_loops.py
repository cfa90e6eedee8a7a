"""Schedulers in a loop: too early, too often, or only unusual."""

import pytest
import torch
from torch.optim import lr_scheduler

from tests.checks.loops import batches, loss_of, names, net, sgd, steps_of, train, watch


def schedulers(optimiser):
    yield lr_scheduler.StepLR(optimiser, 3)
    yield lr_scheduler.CosineAnnealingWarmRestarts(optimiser, 5)
    warm = lr_scheduler.LinearLR(optimiser, 0.1, total_iters=4)
    yield lr_scheduler.SequentialLR(optimiser, [warm, lr_scheduler.ExponentialLR(optimiser, 0.9)], [4])
    yield lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(optimiser, 3), lr_scheduler.ExponentialLR(optimiser, 0.99)])


@pytest.mark.parametrize("which", range(4))
def test_a_scheduler_after_the_step_is_healthy_and_counts_once(which: int) -> None:
    model = net()
    optimiser = sgd(model)
    schedule = list(schedulers(optimiser))[which]
    steps = steps_of(model, optimiser, lambda: train(model, optimiser, after=schedule.step))
    assert steps[5].counts["scheduler"] == 1
    report = watch(model, optimiser, lambda: train(model, optimiser, after=schedule.step))
    assert not names(report)
    assert "scheduler-before-optimiser" in report.clear


@pytest.mark.parametrize("which", range(4))
@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_scheduler_between_backward_and_step_is_named(which: int) -> None:
    model = net()
    optimiser = sgd(model)
    schedule = list(schedulers(optimiser))[which]

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            schedule.step()
            optimiser.step()

    report = watch(model, optimiser, run)
    assert names(report) == ["scheduler-before-optimiser"]
    assert report.findings[0].location is not None
    assert "schedule.step" in report.findings[0].location.text


@pytest.mark.parametrize("per_batch", [True, False])
@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_scheduler_before_the_first_step_is_named(per_batch: bool) -> None:
    model = net()
    optimiser = sgd(model)
    schedule = lr_scheduler.ExponentialLR(optimiser, 0.9)

    def run() -> None:
        for _ in range(4):
            if not per_batch:
                schedule.step()
            for batch in batches(6):
                if per_batch:
                    schedule.step()
                optimiser.zero_grad()
                loss_of(model, batch).backward()
                optimiser.step()

    assert names(watch(model, optimiser, run)) == ["scheduler-before-optimiser"]


@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_schedule_may_be_wound_forward_first() -> None:
    model = net()
    optimiser = sgd(model)
    schedule = lr_scheduler.ExponentialLR(optimiser, 0.99)

    def run() -> None:
        for _ in range(5):
            schedule.step()
        train(model, optimiser, after=schedule.step)

    assert not names(watch(model, optimiser, run))


def test_a_plateau_may_be_measured_before_the_first_step() -> None:
    model = net()
    optimiser = sgd(model)
    schedule = lr_scheduler.ReduceLROnPlateau(optimiser)

    def run() -> None:
        for _ in range(4):
            schedule.step(1.0)
            train(model, optimiser, 6)

    assert not names(watch(model, optimiser, run))


def test_a_scheduler_of_another_optimiser_stands_where_it_likes() -> None:
    model = net()
    first, last = (torch.optim.SGD(model[i].parameters(), 0.05) for i in (0, -1))
    schedules = [lr_scheduler.ExponentialLR(o, 0.99) for o in (first, last)]

    def run() -> None:
        for batch in batches():
            model.zero_grad()
            loss_of(model, batch).backward()
            first.step()
            schedules[0].step()
            last.step()
            schedules[1].step()

    assert not names(watch(model, [first, last], run))


@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_first_step_that_the_scaler_skips_is_not_the_schedulers_fault() -> None:
    model = net()
    optimiser = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    schedule = lr_scheduler.ExponentialLR(optimiser, 0.99)

    def run() -> None:
        for i, batch in enumerate(batches()):
            optimiser.zero_grad()
            scaler.scale(loss_of(model, batch) * (1e9 if i == 0 else 1)).backward()
            scaler.step(optimiser)
            scaler.update()
            schedule.step()

    assert not names(watch(model, optimiser, run))
