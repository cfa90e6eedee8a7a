"""Clipping in a loop: where it does nothing, and where it does its work."""

import pytest
import torch
from torch import nn

from tests.checks.loops import batches, loss_of, names, net, sgd, train, watch

IMPORTED = nn.utils.clip_grad_norm_


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize(
    ("name", "where"),
    # torch itself does not let clip_grad_value_ have nothing.
    [("clip_grad_norm_", "after the step"), ("clip_grad_norm_", "after zero_grad"), ("clip_grad_value_", "after the step")],
)
def test_clipping_in_the_wrong_place_is_named(name: str, where: str, to_none: bool) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        clip = getattr(nn.utils, name)
        for batch in batches():
            optimiser.zero_grad(set_to_none=to_none)
            if where == "after zero_grad":
                clip(model.parameters(), 1.0)
            loss_of(model, batch).backward()
            optimiser.step()
            if where == "after the step":
                clip(model.parameters(), 1.0)

    report = watch(model, optimiser, run)
    assert names(report) == ["clipping-misplaced"]
    assert report.findings[0].location is not None
    assert "clip(" in report.findings[0].location.text


@pytest.mark.parametrize("part", [lambda m: m.parameters(), lambda m: list(m[0].parameters()), lambda m: m[0].weight])
def test_clipping_before_the_step_is_healthy(part) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            nn.utils.clip_grad_norm_(part(model), 1.0)
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_clipping_that_was_imported_before_the_watch_is_heard() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        train(model, optimiser, after=lambda: IMPORTED(model.parameters(), 1.0))

    assert names(watch(model, optimiser, run)) == ["clipping-misplaced"]


def test_asking_for_the_norm_after_the_step_is_healthy() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        train(model, optimiser, after=lambda: nn.utils.clip_grad_norm_(model.parameters(), float("inf")))

    assert not names(watch(model, optimiser, run))


def test_clipping_of_another_model_is_its_own_matter() -> None:
    model, other = net(), net()
    optimiser, its = sgd(model), sgd(other)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()
            its.zero_grad()
            loss_of(other, batch).backward()
            nn.utils.clip_grad_norm_(other.parameters(), 1.0)
            its.step()

    assert not names(watch(model, optimiser, run))


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("unscale", ["never", "before", "after"])
def test_clipping_before_unscaling_is_named(unscale: str, enabled: bool) -> None:
    model = net()
    optimiser = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, enabled=enabled)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            scaler.scale(loss_of(model, batch)).backward()
            if unscale == "before":
                scaler.unscale_(optimiser)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if unscale == "after":
                scaler.unscale_(optimiser)
            scaler.step(optimiser)
            scaler.update()

    found = names(watch(model, optimiser, run))
    assert found == (["clipping-misplaced"] if enabled and unscale != "before" else [])
