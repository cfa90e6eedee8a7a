"""Loops that clear their gradients in every way people do, and loops that forget to."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.checks.loops import batches, loss_of, net

Loop = Callable[[], tuple[nn.Module, list[torch.optim.Optimizer], Callable[[], None]]]
HEALTHY: dict[str, Loop] = {}
SICK: dict[str, Loop] = {}


def healthy(make: Loop) -> Loop:
    HEALTHY[make.__name__] = make
    return make


def sick(make: Loop) -> Loop:
    SICK[make.__name__] = make
    return make


def sgd(model: nn.Module, lr: float = 0.05, **options) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr, **options)


def plain(optimiser_of=sgd, before=lambda model, optimiser: None, after=lambda model, optimiser: None):
    model = net()
    optimiser = optimiser_of(model)

    def run() -> None:
        for batch in batches():
            before(model, optimiser)
            loss_of(model, batch).backward()
            optimiser.step()
            after(model, optimiser)

    return model, [optimiser], run


@healthy
def cleared_before_the_backward():
    return plain(before=lambda model, optimiser: optimiser.zero_grad())


@healthy
def cleared_after_the_step():
    return plain(after=lambda model, optimiser: optimiser.zero_grad())


@healthy
def set_to_zeros():
    return plain(before=lambda model, optimiser: optimiser.zero_grad(set_to_none=False))


@healthy
def set_to_zeros_after_the_step():
    return plain(after=lambda model, optimiser: optimiser.zero_grad(set_to_none=False))


@healthy
def cleared_through_the_model():
    return plain(before=lambda model, optimiser: model.zero_grad())


@healthy
def set_to_none_by_hand():
    def clear(model, optimiser):
        for p in model.parameters():
            p.grad = None

    return plain(before=clear)


@healthy
def zeroed_in_place_by_hand():
    def clear(model, optimiser):
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()

    return plain(before=clear)


@healthy
def zeroed_through_data():
    def clear(model, optimiser):
        for p in model.parameters():
            if p.grad is not None:
                p.grad.data.zero_()

    return plain(before=clear)


@healthy
def faded_on_purpose():
    def fade(model, optimiser):
        for p in model.parameters():
            p.grad.mul_(0.5)

    return plain(after=fade)


@healthy
def adam():
    return plain(lambda m: torch.optim.Adam(m.parameters(), 1e-3), before=lambda model, optimiser: optimiser.zero_grad())


def _accumulating(clear: bool):
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for i, batch in enumerate(batches(48)):
            (loss_of(model, batch) / 4).backward()
            if i % 4 == 3:
                optimiser.step()
                if clear:
                    optimiser.zero_grad()

    return model, [optimiser], run


@healthy
def four_batches_a_step():
    return _accumulating(True)


@sick
def four_batches_a_step_and_never_cleared():
    return _accumulating(False)


@healthy
def two_backwards_one_step():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            (1e-4 * sum(p.square().sum() for p in model.parameters())).backward()
            optimiser.step()

    return model, [optimiser], run


@healthy
def gradient_penalty():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for x, y in batches():
            x = x.clone().requires_grad_()
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            (slope,) = torch.autograd.grad(loss, x, create_graph=True)
            (loss + slope.square().sum()).backward()
            optimiser.step()

    return model, [optimiser], run


@healthy
@pytest.mark.filterwarnings("ignore:Using backward")
def create_graph():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward(create_graph=True)
            optimiser.step()

    return model, [optimiser], run


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.maker = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 64))
        self.judge = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 1))


def _gan(detach: bool, clear_judge: bool):
    model = Pair()
    judge, maker = (torch.optim.Adam(part.parameters(), 1e-3) for part in (model.judge, model.maker))
    bce = functional.binary_cross_entropy_with_logits

    def run() -> None:
        for x, _ in batches():
            one, zero = torch.ones(len(x), 1), torch.zeros(len(x), 1)
            made = model.maker(torch.randn(len(x), 8))
            if clear_judge:
                judge.zero_grad()
            fake = made.detach() if detach else made
            (bce(model.judge(x), one) + bce(model.judge(fake), zero)).backward(retain_graph=not detach)
            judge.step()
            maker.zero_grad()
            bce(model.judge(model.maker(torch.randn(len(x), 8))), one).backward()
            maker.step()

    return model, [judge, maker], run


@healthy
def gan_with_detach():
    return _gan(True, True)


@healthy
def gan_without_detach():
    return _gan(False, True)


@sick
def gan_whose_judge_is_never_cleared():
    return _gan(True, False)


def _lbfgs(clear: bool):
    model = net()
    optimiser = torch.optim.LBFGS(model.parameters(), lr=0.05, max_iter=3)

    def run() -> None:
        for batch in batches(10):

            def closure(batch=batch) -> torch.Tensor:
                if clear:
                    optimiser.zero_grad()
                loss = loss_of(model, batch)
                loss.backward()
                return loss

            optimiser.step(closure)

    return model, [optimiser], run


@healthy
def lbfgs():
    return _lbfgs(True)


@sick
def lbfgs_never_cleared():
    return _lbfgs(False)


def _scaled(clear: bool, scale: float):
    model = net()
    optimiser = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=4)

    def run() -> None:
        for i, batch in enumerate(batches()):
            if clear:
                optimiser.zero_grad()
            # Where the scale is large, the first batch overflows.
            scaler.scale(loss_of(model, batch) * (1e9 if i == 0 else 1)).backward()
            scaler.step(optimiser)
            scaler.update()

    return model, [optimiser], run


@healthy
def scaler_that_skips():
    return _scaled(True, 2.0**120)


@sick
def scaler_never_cleared():
    return _scaled(False, 1.0)


@sick
def scaler_that_skips_for_ever():
    return _scaled(False, 2.0**120)


@sick
def sgd_never_cleared():
    return plain()


@sick
def adam_never_cleared():
    return plain(lambda m: torch.optim.Adam(m.parameters(), 1e-3))


@sick
def momentum_in_place_never_cleared():
    return plain(lambda m: sgd(m, weight_decay=1e-2, momentum=0.9))


@sick
def cleared_once_an_epoch():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for _ in range(3):
            optimiser.zero_grad()
            for batch in batches(10):
                loss_of(model, batch).backward()
                optimiser.step()

    return model, [optimiser], run


@sick
def another_optimiser_is_cleared():
    model = net()
    first = torch.optim.SGD(model[0].parameters(), 0.05)
    last = torch.optim.SGD(model[-1].parameters(), 0.05)

    def run() -> None:
        for batch in batches():
            first.zero_grad()
            loss_of(model, batch).backward()
            first.step()
            last.step()

    return model, [first, last], run
