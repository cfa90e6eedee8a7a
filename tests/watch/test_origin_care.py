"""Taking a step apart changes nothing, names the sample, the target or the expression, and leaves no listener behind."""

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import sleuth
from sleuth.core.observation import NotFinite, Origin
from tests.watch.breaking import CASES, SICK
from tests.watch.origin_loops import QUIET, plain_loop, seen, watch_loop


@pytest.fixture(autouse=True)
def nothing_was_compiled():
    """Where something was, the loss expression is not listened to."""
    torch._dynamo.reset()


class Noisy(nn.Module):
    """Buffers that its forward changes, and three sources of chance."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.drop, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1)
        self.register_buffer("calls", torch.zeros(()))
        self.cached = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        h = self.drop(self.norm(self.first(x))) + 0.01 * random.random() + 0.01 * np.random.rand()
        self.cached = h
        return self.last(h)


@pytest.mark.parametrize("broken", ["forward", "backward"])
def test_nothing_is_changed_by_the_inquiry(broken: str) -> None:
    def run(watched: bool) -> list:
        torch.manual_seed(0), random.seed(0), np.random.seed(0)
        x, y = torch.rand(64, 4), torch.rand(64, 1)
        x[SICK] = 0.0
        model = Noisy()
        optimiser = torch.optim.Adam(model.parameters(), 1e-3)
        gradients = []

        def loop() -> None:
            for a, b in DataLoader(TensorDataset(x, y), 8):
                optimiser.zero_grad()
                z = model(a)
                scale = a.sum(1, keepdim=True)
                loss = torch.log(scale).mean() * z.mean() if broken == "forward" else torch.sqrt(scale * (z - b).abs()).mean()
                loss.backward()
                optimiser.step()
                gradients.append([p.grad.clone() for p in model.parameters()])

        if watched:
            with sleuth.watch(model, optimiser, **QUIET) as w:
                loop()
            assert [o.operation for o in seen(w, Origin)][:1] == ["log" if broken == "forward" else "sqrt"]
        else:
            loop()
        chance = [torch.get_rng_state(), torch.tensor(random.random()), torch.tensor(np.random.rand())]
        return [*model.state_dict().values(), *(g for step in gradients for g in step), *chance]

    for plain, watched in zip(run(False), run(True), strict=True):
        assert plain.numpy().tobytes() == watched.numpy().tobytes()


def test_what_is_found_is_stored_and_judged_alike_afterwards(tmp_path: Path) -> None:
    model, optimiser, loop = CASES["norm by hand"].train()
    with sleuth.watch(model, optimiser, directory=tmp_path, quiet=True) as w:
        for _ in loop:
            pass
    (run,) = tmp_path.iterdir()
    live, loaded = w.report(), sleuth.load(run)
    assert [(f.name, f.summary, f.fix, f.location) for f in loaded.findings] == [
        (f.name, f.summary, f.fix, f.location) for f in live.findings
    ]
    assert "torch.linalg.norm(x)" in live.to_text()


def test_a_sample_with_nan_is_the_culprit_and_no_operation() -> None:
    model, optimiser, loop = plain_loop(lambda x, y: x.__setitem__(SICK, torch.nan))
    report, w = watch_loop(model, optimiser, loop)
    finding = report.culprits[0].finding
    assert finding.name == "input-not-finite"
    assert finding.numbers["sample"] == SICK
    assert f"sample {SICK} of the data set" in finding.summary
    assert not seen(w, Origin)


def test_a_target_with_nan_is_the_culprit_and_no_operation() -> None:
    model, optimiser, loop = plain_loop(lambda x, y: y.__setitem__(SICK, torch.nan))
    report, w = watch_loop(model, optimiser, loop)
    assert report.culprits[0].finding.name == "target-not-finite"
    assert report.culprits[0].finding.numbers["sample"] == SICK
    assert not seen(w, Origin)


def test_missing_values_that_the_model_fills_in_are_not_accused() -> None:
    class Filling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(torch.nan_to_num(x))

    def spoil(x: torch.Tensor, y: torch.Tensor) -> None:
        x[::7, 1] = torch.nan
        y[SICK] = -1.0

    model, optimiser, loop = plain_loop(spoil, Filling(), loss=lambda z, y: (z - torch.log(y)).pow(2).mean())
    report, w = watch_loop(model, optimiser, loop)
    (origin,) = seen(w, Origin)
    assert origin.operation == "log"
    assert not [n for n in seen(w, NotFinite) if n.what == "input"]
    assert report.culprits[0].finding.name == "loss-not-finite"


def test_missing_values_that_reach_a_weight_are_accused_though_the_loss_is_finite() -> None:
    def loss(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        known = ~torch.isnan(z)
        return torch.where(known, (z - y) ** 2, 0.0).sum() / known.sum()

    model, optimiser, loop = plain_loop(lambda x, y: x.__setitem__((SICK, 2), torch.nan), loss=loss)
    report, w = watch_loop(model, optimiser, loop)
    assert [n.what for n in seen(w, NotFinite)][:2] == ["gradient", "input"]
    assert report.culprits[0].finding.name == "input-not-finite"
    assert report.culprits[0].finding.numbers["sample"] == SICK


def test_an_expression_that_was_not_heard_before_is_told_from_its_graph() -> None:
    torch.manual_seed(0)
    x, y = torch.rand(64, 4), torch.rand(64, 1)
    model = nn.Linear(4, 1)
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, **QUIET) as w:
        for step, (a, b) in enumerate(DataLoader(TensorDataset(x, y), 8)):
            optimiser.zero_grad()
            loss = (model(a) - b).abs().mean()
            if step == 5:
                loss = loss + torch.sqrt(0 * model.weight.sum())
            loss.backward()
            optimiser.step()
    (origin,) = seen(w, Origin)
    assert (origin.operation, origin.direction, origin.certain) == ("sqrt", "backward", False)
    assert origin.location is not None
    assert origin.location.text == "loss = loss + torch.sqrt(0 * model.weight.sum())"
    assert "most likely born in the backward of sqrt" in w.report().culprits[0].finding.summary


def test_several_calls_of_the_model_and_a_closure_are_taken_apart() -> None:
    torch.manual_seed(0)
    x = torch.rand(64, 4)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimiser = torch.optim.LBFGS(model.parameters(), 1e-2, max_iter=2)
    with sleuth.watch(model, optimiser, **QUIET) as w:
        for step, (a,) in enumerate(DataLoader(TensorDataset(x), 8)):
            other = a + 0.1
            if step == 5:
                other[2] = a[2]

            def closure(a: torch.Tensor = a, other: torch.Tensor = other) -> torch.Tensor:
                optimiser.zero_grad()
                gap = ((model(a) - model(other)) ** 2).sum(1).sqrt()
                loss = torch.relu(1 - gap).mean()
                loss.backward()
                return loss

            optimiser.step(closure)
    origin = seen(w, Origin)[0]
    assert (origin.operation, origin.direction, origin.certain) == ("sqrt", "backward", True)
    assert origin.makers[:2] == ("sum", "pow")


def test_what_an_earlier_call_of_the_model_returned_is_not_taken_for_data() -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(5, 1)

        def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            return torch.log(torch.sigmoid(self.linear(torch.cat([x, h], 1))))

    cell = Cell()
    nn.init.constant_(cell.linear.weight, 0.1)
    optimiser = torch.optim.SGD(cell.parameters(), 1e-3)

    def unrolled(a: torch.Tensor) -> torch.Tensor:
        h = cell(a, torch.zeros(len(a), 1))
        return cell(a.abs(), h)

    x = torch.rand(64, 4)
    x[SICK] = -1e4
    with sleuth.watch(cell, optimiser, **QUIET) as w:
        for (a,) in DataLoader(TensorDataset(x), 8):
            optimiser.zero_grad()
            unrolled(a).mean().backward()
            optimiser.step()
    origin = seen(w, Origin)[0]
    assert (origin.operation, origin.makers[:1]) == ("log", ("sigmoid",))
    assert not [n for n in seen(w, NotFinite) if n.what == "input"]


def test_the_listener_to_the_loss_is_gone_between_and_afterwards() -> None:
    model, optimiser, loop = plain_loop(lambda x, y: None)
    depths = []
    with sleuth.watch(model, optimiser, **QUIET):
        for _ in loop:
            depths.append(torch._C._len_torch_function_stack())
    # After the steps 0, 1, 3, 7, 15 and 31 the next one is heard.
    assert [step for step, depth in enumerate(depths) if depth] == [0, 1, 3, 7, 15, 31]
    assert torch._C._len_torch_function_stack() == 0


def test_losses_are_counted_once_while_the_expression_is_heard() -> None:
    model, optimiser, loop = plain_loop(lambda x, y: None, loss=lambda z, y: functional.mse_loss(z, y))
    heard = []
    with sleuth.watch(model, optimiser, **QUIET) as w:
        hear = w.watching.listener.hear_loss
        w.watching.listener.hear_loss = lambda *a: (heard.append(a[0]), hear(*a))[1]
        for _ in islice(loop, 6):
            pass
    assert heard == ["mse_loss"] * 6
