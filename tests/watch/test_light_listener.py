"""Between the steps that are heard in full the light listener hears: what must not be missed is not missed."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth.core.observation import Call, Evaluation, Optimiser, Split, Step
from sleuth.session.watch import Watch
from tests.checks.loops import batches, loss_of, names, net, watch

STEPS = 400
QUIET = {"directory": None, "quiet": True}


def steps_of(w: Watch) -> list[Step]:
    return w.history.many(Step)


def heard(steps: list[Step]) -> list[Step]:
    return [s for s in steps if s.calls]


def trained(
    model: nn.Module, optimiser: torch.optim.Optimizer, between: Callable[[int], None] = lambda step: None
) -> list[float]:
    losses = []
    for number, batch in enumerate(batches(STEPS)):
        optimiser.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        between(number)
    return losses


def test_the_loss_and_the_rate_of_every_step_are_recorded() -> None:
    model = net()
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.99)
    rates = []

    def between(number: int) -> None:
        rates.append(optimiser.param_groups[0]["lr"])
        schedule.step()

    with sleuth.watch(model, optimiser, **QUIET) as w:
        losses = trained(model, optimiser, between)
    steps = steps_of(w)
    assert [s.loss for s in steps] == losses
    assert [s.lr for s in steps] == rates
    assert 64 < len(heard(steps)) < STEPS / 2, "the light listener heard the rest"


def test_what_is_asked_for_does_not_depend_on_the_time() -> None:
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    with sleuth.watch(model, optimiser, every=1, **QUIET) as w:
        trained(model, optimiser)
    assert [s.step for s in heard(steps_of(w))] == [*range(64), *range(64, STEPS, 8)]
    assert w.watching.looks == STEPS


def test_gradients_that_are_no_longer_cleared_are_found() -> None:
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)

    def run() -> None:
        for number, batch in enumerate(batches(STEPS)):
            if number < 150:
                optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    report = watch(model, optimiser, run, every=1)
    assert names(report) == ["missing-zero-grad"]
    assert 150 <= report.findings[0].first_step <= 160


@pytest.mark.parametrize("every", [None, 1])
def test_loops_that_keep_gradients_on_purpose_are_left_alone(every: int | None) -> None:
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)

    def accumulating() -> None:
        for number, batch in enumerate(batches(3 * STEPS)):
            (loss_of(model, batch) / 3).backward()
            if number % 3 == 2:
                optimiser.step()
                optimiser.zero_grad()

    def fading() -> None:
        for batch in batches(STEPS):
            loss_of(model, batch).backward()
            optimiser.step()
            for parameter in model.parameters():
                parameter.grad.mul_(0.5)

    for run in (accumulating, fading):
        assert names(watch(model, optimiser, run, every=every)) == [], run.__name__


@pytest.mark.parametrize("every", [None, 1])
def test_two_optimisers_that_take_turns_are_left_alone(every: int | None) -> None:
    one, other = net(), net()
    pair = nn.ModuleList([one, other])
    optimisers = [torch.optim.Adam(m.parameters(), 1e-3) for m in (one, other)]

    def run() -> None:
        for batch in batches(STEPS):
            for model, optimiser in zip((one, other), optimisers, strict=True):
                optimiser.zero_grad()
                (loss_of(one, batch) + 0.1 * loss_of(other, batch) if model is one else loss_of(other, batch)).backward()
                optimiser.step()

    assert names(watch(pair, optimisers, run, every=every)) == []


def test_a_validation_is_heard_wherever_it_comes() -> None:
    model = net(dropout=0.2)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = next(iter(batches(1, 200)))
    validated = {}

    def between(number: int) -> None:
        if number % 50 == 49:
            model.eval()
            with torch.no_grad():
                validated[number + 1] = functional.cross_entropy(model(x), y).item()
            model.train()

    with sleuth.watch(model, optimiser, **QUIET) as w:
        trained(model, optimiser, between)
    found = {e.step: e.metrics["loss"] for e in w.history.many(Evaluation) if e.split is Split.VALIDATION}
    assert found == pytest.approx(validated)


def test_a_validation_in_the_wrong_mode_is_found_though_it_comes_late() -> None:
    model = net(dropout=0.5)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    parts = list(batches(6))

    def between(number: int) -> None:
        if number >= 150 and number % 60 == 0:
            with torch.no_grad():
                for part in parts:
                    loss_of(model, part)

    report = watch(model, optimiser, lambda: trained(model, optimiser, between) and None)
    assert names(report) == ["validating-in-train-mode"]
    assert "loss_of(model, part)" in report.findings[0].location.text or "model(batch[0])" in report.findings[0].location.text


def test_a_loss_that_is_lost_is_met_at_its_step_with_the_batch(tmp_path) -> None:
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    bad = 333
    with sleuth.watch(model, optimiser, directory=tmp_path, quiet=True) as w:
        for number, (x, y) in enumerate(batches(STEPS)):
            x = x.clone()
            if number == bad:
                x[5, 7] = math.nan
            optimiser.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            if number == bad:
                break
            optimiser.step()
    scene = sleuth.scene(w.file.parent)
    assert scene.facts["step"] == bad
    assert "input-not-finite" in names(w.report()) or "loss-not-finite" in names(w.report())
    replayed = sleuth.replay(scene, net())
    assert replayed.reproduced
    assert [step["step"] for step in scene.facts["steps"]][-1] == bad - 1


def test_a_gradient_that_is_lost_is_met_before_it_is_written() -> None:
    model = net()
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    with sleuth.watch(model, optimiser, **QUIET) as w:
        for number, (x, y) in enumerate(batches(STEPS)):
            optimiser.zero_grad()
            scores = model(x)
            if number == 301:
                scores = scores + (scores * 0).abs().sqrt()
            functional.cross_entropy(scores, y).backward()
            optimiser.step()
    report = w.report()
    assert names(report)[0] == "gradient-not-finite"
    assert report.findings[0].first_step == 301


def test_whatever_is_new_in_the_loop_is_heard() -> None:
    model = net()
    first = torch.optim.SGD(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.StepLR(first, 1)
    second = []

    def between(number: int) -> None:
        if number == 199:
            schedule.step()
        if number > 300:
            if not second:
                second.append(torch.optim.Adam(model.parameters(), 1e-3))
            second[0].step()

    with sleuth.watch(model, first, **QUIET) as w:
        trained(model, first, between)
    calls = {c.kind: c.step for c in w.history.many(Call)}
    assert calls["scheduler"] == 200
    assert [o.step for o in w.history.many(Optimiser) if o.number == 1] == [302]


def test_modes_that_change_on_the_way_are_seen() -> None:
    model = net(dropout=0.5)
    optimiser = torch.optim.SGD(model.parameters(), 0.01)

    def between(number: int) -> None:
        if number == 100:
            model.eval()

    report = watch(model, optimiser, lambda: trained(model, optimiser, between) and None)
    assert names(report) == ["training-in-eval-mode"]
