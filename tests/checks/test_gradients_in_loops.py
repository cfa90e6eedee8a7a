"""Gradients that are erased, and steps that do not come: what is misplaced, and what is only unusual."""

import pytest
import torch
from torch import nn

from sleuth.core.stage import Confidence
from tests.checks.loops import batches, loss_of, names, net, sgd, watch


def by_optimiser(model, optimiser):
    optimiser.zero_grad()


def by_optimiser_with_zeros(model, optimiser):
    optimiser.zero_grad(set_to_none=False)


def by_model(model, optimiser):
    model.zero_grad()


def by_hand(model, optimiser):
    for p in model.parameters():
        p.grad = None


def by_hand_with_zeros(model, optimiser):
    for p in model.parameters():
        p.grad.zero_()


def through_data(model, optimiser):
    for p in model.parameters():
        p.grad.data.zero_()


@pytest.mark.parametrize("every", [1, 1000])
@pytest.mark.parametrize("clear", [by_optimiser, by_optimiser_with_zeros, by_model, by_hand, by_hand_with_zeros, through_data])
def test_clearing_between_backward_and_step_is_named(clear, every: int) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            loss_of(model, batch).backward()
            clear(model, optimiser)
            optimiser.step()

    assert names(watch(model, optimiser, run, every=every)) == ["gradients-erased"]


def test_a_bad_batch_may_be_thrown_away() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for i, batch in enumerate(batches()):
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            if i % 7 == 3:
                optimiser.zero_grad()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_gradients_that_are_zero_by_themselves_were_not_erased() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            (0 * loss_of(model, batch)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()

    assert not names(watch(model, optimiser, run, every=1))


@pytest.mark.parametrize("zero_first", [True, False])
def test_a_step_before_the_backward_is_told_from_an_erased_gradient(zero_first: bool) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            if zero_first:
                optimiser.zero_grad()
            loss = loss_of(model, batch)
            optimiser.step()
            loss.backward()
            if not zero_first:
                optimiser.zero_grad()

    report = watch(model, optimiser, run)
    assert names(report) == ["missing-step"]
    assert "before the backward" in report.findings[0].summary
    assert report.findings[0].location is not None
    assert "step()" in report.findings[0].location.text


@pytest.mark.parametrize("clear", [True, False])
def test_a_training_that_never_steps_is_named(clear: bool) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            if clear:
                optimiser.zero_grad()
            loss_of(model, batch).backward()

    report = watch(model, optimiser, run)
    assert names(report) == ["missing-step"]
    assert report.findings[0].location is not None
    assert "backward" in report.findings[0].location.text


def test_one_of_two_optimisers_that_never_steps_is_named_at_the_end() -> None:
    model = net()
    first, last = (torch.optim.Adam(model[i].parameters(), 1e-3) for i in (0, -1))

    def run() -> None:
        for batch in batches():
            first.zero_grad()
            last.zero_grad()
            loss_of(model, batch).backward()
            last.step()

    report = watch(model, [first, last], run)
    assert names(report) == ["missing-step"]
    assert report.findings[0].where == "optimiser 0"
    assert report.findings[0].confidence is Confidence.LIKELY


def test_an_optimiser_that_steps_through_another_is_not_missing() -> None:
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            super().__init__([p for g in inner.param_groups for p in g["params"]], {})
            self.inner = inner

    model = net()
    wrapper = Wrapper(sgd(model))

    def run() -> None:
        for batch in batches():
            wrapper.zero_grad()
            loss_of(model, batch).backward()
            wrapper.inner.step()

    report = watch(model, wrapper, run)
    assert not names(report), report.to_text()


def test_a_few_backwards_are_too_little_to_miss_a_step() -> None:
    model = net()

    def run() -> None:
        for batch in batches(6):
            loss_of(model, batch).backward()

    report = watch(model, sgd(model), run)
    assert not names(report)
    assert "missing-step" in report.not_examined


def test_a_loop_that_only_evaluates_misses_nothing() -> None:
    model = net()

    def run() -> None:
        with torch.no_grad():
            for batch in batches():
                model.eval()(batch[0])

    assert not names(watch(model, sgd(model), run))


@pytest.mark.parametrize("through_data", [True, False])
def test_weights_that_somebody_else_moves_miss_no_step(through_data: bool) -> None:
    model = net()

    def run() -> None:
        for batch in batches():
            model.zero_grad()
            loss_of(model, batch).backward()
            for p in model.parameters():
                if through_data:
                    p.data -= 0.01 * p.grad
                else:
                    with torch.no_grad():
                        p -= 0.01 * p.grad

    assert not names(watch(model, sgd(model), run))


# Optimisers that come and go.
