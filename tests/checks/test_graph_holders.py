"""Who holds the graphs, and loops that hold one for a while on purpose."""

from collections import deque
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth.core.stage import Severity
from tests.checks.held_graphs import batches, mlp, named_by_exception, only, plainly, report_of


def test_a_list_of_losses_is_named_with_the_line_that_adds_to_it() -> None:
    losses = []

    def each(i, loss, output):
        losses.append(loss)

    found = only(report_of(plainly(each)))
    assert (found.name, found.where, found.severity) == ("graph-retained", "losses", Severity.ERROR)
    assert found.location.text == "losses.append(loss)"


def test_outputs_that_are_kept_in_an_object_are_named_as_the_user_writes_them() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model = mlp()
            self.optimiser = torch.optim.Adam(self.model.parameters(), 1e-3)
            self.outputs: list[torch.Tensor] = []

        def fit(self) -> None:
            for x, y in batches():
                self.optimiser.zero_grad()
                output = self.model(x)
                functional.cross_entropy(output, y).backward()
                self.optimiser.step()
                self.outputs.append(output)

    trainer = Trainer()
    found = only(report_of(lambda *_: trainer.fit(), trainer.model, trainer.optimiser))
    assert found.where in ("self.outputs", "trainer.outputs")
    assert "tensors of shape (32, 10)" in found.summary
    assert found.location.text == "self.outputs.append(output)"


def test_a_moving_average_that_keeps_its_graph_is_named() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        average = torch.zeros(())
        for x, y in batches():
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            average = 0.9 * average + 0.1 * loss

    found = only(report_of(run))
    assert (found.name, found.where) == ("graph-retained", "average")
    assert found.location.text == "average = 0.9 * average + 0.1 * loss"


class Meter:
    def __init__(self) -> None:
        self.total, self.count = torch.zeros(()), 0

    def update(self, value: torch.Tensor) -> None:
        self.total = self.total + value
        self.count += 1


def test_a_meter_that_is_given_tensors_is_named() -> None:
    meter = Meter()
    found = only(report_of(plainly(lambda i, loss, output: meter.update(loss))))
    assert (found.name, found.where) == ("graph-retained", "meter.total")
    assert found.location.text == "self.total = self.total + value"


def test_what_a_hook_keeps_of_a_layer_is_found() -> None:
    model, kept = mlp(), []
    hook = model[0].register_forward_hook(lambda layer, given, output: kept.append(output))
    found = only(report_of(plainly(lambda *_: None, 300), model))
    hook.remove()
    assert found.name == "graph-retained"
    assert found.where in ("kept", None)


def test_a_total_that_begins_anew_with_every_epoch_is_a_smaller_matter() -> None:
    kept = {"total": torch.zeros(())}

    def each(i, loss, output):
        kept["total"] = loss * 0 if i % 60 == 0 else kept["total"] + loss

    assert only(report_of(plainly(each, 200))).severity is Severity.WARNING


def test_a_long_but_bounded_window_is_a_hint() -> None:
    window: deque[torch.Tensor] = deque(maxlen=64)
    found = only(report_of(plainly(lambda i, loss, output: window.append(loss), 300)))
    assert (found.severity, found.where) == (Severity.HINT, "window")


@pytest.mark.parametrize("size", [1, 10, 30])
def test_the_latest_losses_may_be_kept(size: int) -> None:
    window: deque[torch.Tensor] = deque(maxlen=size)
    report = report_of(plainly(lambda i, loss, output: window.append(loss)))
    assert not report.findings
    assert "graph-retained" in report.clear


def test_numbers_and_detached_outputs_may_be_kept() -> None:
    kept: list[object] = []
    assert not report_of(plainly(lambda i, loss, output: kept.append((loss.item(), output.detach())))).findings


def test_losses_of_a_short_epoch_that_are_averaged_at_its_end_are_left_alone() -> None:
    losses: list[torch.Tensor] = []

    def each(i, loss, output):
        losses.append(loss)
        if i % 30 == 29:
            torch.stack(losses).mean().item()
            losses.clear()

    assert not report_of(plainly(each)).findings


def test_the_users_variables_do_not_live_longer_because_they_were_looked_at() -> None:
    import weakref

    losses, gone = [], []

    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for x, y in batches(80):
            batch = x.clone()
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(batch), y)
            loss.backward()
            optimiser.step()
            losses.append(loss)
            reference = weakref.ref(batch)
            del batch
            gone.append(reference() is None)

    assert report_of(run).culprits[0].finding.where == "losses"
    assert all(gone)


# Loops that hold a graph for a while on purpose.


def accumulates(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    for i, (x, y) in enumerate(batches()):
        (functional.cross_entropy(model(x), y) / 4).backward()
        if i % 4 == 3:
            optimiser.step()
            optimiser.zero_grad()


def walks_twice(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    for x, y in batches():
        optimiser.zero_grad()
        output = model(x)
        functional.cross_entropy(output, y).backward(retain_graph=True)
        (output**2).mean().backward()
        optimiser.step()


def penalises_gradients(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    for x, y in batches():
        optimiser.zero_grad()
        x = x.clone().requires_grad_()
        loss = functional.cross_entropy(model(x), y)
        (slope,) = torch.autograd.grad(loss, x, create_graph=True)
        (loss + slope.pow(2).sum()).backward()
        optimiser.step()


def adds_parts(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    for x, y in batches():
        optimiser.zero_grad()
        parts = [functional.cross_entropy(model(part), target) for part, target in zip(x.split(8), y.split(8), strict=True)]
        torch.stack(parts).mean().backward()
        optimiser.step()


def plays_episodes(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """The logarithms of many choices wait for the end of the episode."""
    for _ in range(60):
        chosen = []
        for x, y in batches(70):
            chosen.append(functional.cross_entropy(model(x[:2]), y[:2]))
        optimiser.zero_grad()
        torch.stack(chosen).sum().backward()
        optimiser.step()


@pytest.mark.parametrize("run", [accumulates, walks_twice, penalises_gradients, adds_parts, plays_episodes])
def test_graphs_that_end_with_their_step_are_healthy(run: Callable[..., None]) -> None:
    report = report_of(run, every=1 if run is accumulates else None)
    assert not report.findings, report.to_text()


def test_a_closure_that_is_called_many_times_a_step_is_healthy() -> None:
    model = mlp()
    optimiser = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def run(*_: object) -> None:
        for x, y in batches(60):

            def closure() -> torch.Tensor:
                optimiser.zero_grad()
                loss = functional.cross_entropy(model(x), y)  # noqa: B023
                loss.backward()
                return loss

            optimiser.step(closure)

    assert not report_of(run, model, optimiser).findings


def gan(detaches: bool) -> Callable[..., None]:
    make, judge = nn.Linear(4, 64), mlp()
    maker = torch.optim.Adam(make.parameters(), 1e-3)

    def run(_: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for x, _ in batches(120):
            optimiser.zero_grad()
            made = make(torch.randn(32, 4))
            loss = judge(x).mean() - judge(made.detach() if detaches else made).mean()
            loss.backward()
            optimiser.step()
            maker.zero_grad()
            judge(made).mean().backward()
            maker.step()

    run.judge = judge  # type: ignore[attr-defined]
    return run


def test_a_gan_that_uses_its_fakes_twice_is_healthy() -> None:
    run = gan(detaches=True)
    assert not report_of(run, run.judge).findings


def test_fakes_that_are_not_detached_are_no_recurrent_state() -> None:
    run = gan(detaches=False)
    assert named_by_exception(run, run.judge) == ["backward-fails"]


# The course of memory.
