"""Stranger loops: several optimisers, parts that are frozen or take turns, gradients made by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.checks.clearing_loops import healthy, sgd, sick
from tests.checks.loops import batches, loss_of, net


@healthy
def two_optimisers_on_one_net():
    model = net()
    first = torch.optim.SGD(model[0].parameters(), 0.05)
    last = torch.optim.Adam(model[-1].parameters(), 1e-3)

    def run() -> None:
        for batch in batches():
            first.zero_grad()
            last.zero_grad()
            loss_of(model, batch).backward()
            first.step()
            last.step()

    return model, [first, last], run


@healthy
def two_optimisers_on_the_same_parameters():
    model = net()
    one, other = sgd(model), torch.optim.Adam(model.parameters(), 1e-4)

    def run() -> None:
        for batch in batches():
            one.zero_grad()
            loss_of(model, batch).backward()
            one.step()
            other.step()

    return model, [one, other], run


@healthy
def unfreezing():
    model = net()
    model[0].requires_grad_(False)
    optimiser = sgd(model)

    def run() -> None:
        for i, batch in enumerate(batches()):
            if i == 12:
                model[0].requires_grad_(True)
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    return model, [optimiser], run


@healthy
def freezing_on_the_way():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for i, batch in enumerate(batches()):
            if i == 8:
                model[0].requires_grad_(False)
            optimiser.zero_grad(set_to_none=i % 2 == 0)
            loss_of(model, batch).backward()
            optimiser.step()

    return model, [optimiser], run


@healthy
def heads_that_take_turns():
    torch.manual_seed(0)
    model = nn.ModuleDict({f"head{i}": nn.Linear(64, 10) for i in range(9)})
    optimiser = sgd(model)

    def run() -> None:
        for i, batch in enumerate(batches(36)):
            optimiser.zero_grad()
            loss_of(model[f"head{i % 9}"], batch).backward()
            optimiser.step()

    return model, [optimiser], run


def _sparse(clear: bool):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(17, 4, sparse=True), nn.Flatten())
    optimiser = torch.optim.SGD(model.parameters(), 0.05)

    def run() -> None:
        for x, y in batches():
            if clear:
                optimiser.zero_grad(set_to_none=False)
            functional.cross_entropy(model((x * 16).long()), y).backward()
            optimiser.step()

    return model, [optimiser], run


@healthy
def sparse_gradients():
    return _sparse(True)


@sick
def sparse_gradients_never_cleared():
    return _sparse(False)


@healthy
def sharpness_aware():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            loss_of(model, batch).backward()
            with torch.no_grad():
                up = [0.05 * p.grad / (p.grad.norm() + 1e-9) for p in model.parameters()]
                torch._foreach_add_(list(model.parameters()), up)
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            with torch.no_grad():
                torch._foreach_sub_(list(model.parameters()), up)
            optimiser.step()
            optimiser.zero_grad()

    return model, [optimiser], run


@healthy
def gradients_written_by_hand():
    """As in a surgery on the gradients of several tasks."""
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            mine = [p.grad.clone() for p in model.parameters()]
            optimiser.zero_grad()
            for p, g in zip(model.parameters(), mine, strict=True):
                p.grad = g
            optimiser.step()

    return model, [optimiser], run


@healthy
def gradients_without_a_backward():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            for p, g in zip(
                model.parameters(), torch.autograd.grad(loss_of(model, batch), list(model.parameters())), strict=True
            ):
                p.grad = g
            optimiser.step()

    return model, [optimiser], run


@healthy
def a_second_model_beside_it():
    model, other = net(), net()
    optimiser, its = sgd(model), sgd(other)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()
            loss_of(other, batch).backward()  # never cleared, and none of our business
            its.step()

    return model, [optimiser], run


@healthy
def a_step_that_raises_once():
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for i, batch in enumerate(batches()):
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            if i == 5:

                def closure():
                    raise ZeroDivisionError

                with pytest.raises(ZeroDivisionError):
                    optimiser.step(closure)
            optimiser.step()

    return model, [optimiser], run
