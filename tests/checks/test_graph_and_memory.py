"""Graphs that outlive their step, states that drag them along, memory that rises: told apart from what people do on purpose."""

from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.observation import Holder, Memory
from sleuth.core.stage import Severity
from tests.material import digits

MINE = ["graph-retained", "hidden-state-not-detached", "memory-grows", "backward-fails", "forward-fails"]
X, Y = (torch.as_tensor(a[:512]) for a in digits())
STEPS = 150


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def batches(steps: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for i in range(steps):
        rows = slice(i % 16 * 32, i % 16 * 32 + 32)
        yield X[rows], Y[rows]


def report_of(run: Callable[..., None], model: nn.Module | None = None, optimiser=None, **options) -> sleuth.Report:
    """`run(model, optimiser)` inside a watch."""
    model = model or mlp()
    optimiser = optimiser or torch.optim.Adam(model.parameters(), 1e-3)
    options = {"directory": None, "quiet": True, "select": MINE, **options}
    with sleuth.watch(model, optimiser, **options) as w:
        run(model, optimiser)
    assert not w.notes, w.notes
    return w.report()


def plainly(each: Callable[[int, torch.Tensor, torch.Tensor], None], steps: int = STEPS) -> Callable[..., None]:
    """A plain loop; `each` is given the number, the loss and the output of every step."""

    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for i, (x, y) in enumerate(batches(steps)):
            optimiser.zero_grad()
            output = model(x)
            loss = functional.cross_entropy(output, y)
            loss.backward()
            optimiser.step()
            each(i, loss, output)

    return run


def only(report: sleuth.Report) -> Finding:
    (culprit,) = report.culprits
    return culprit.finding


# Who holds the graphs.


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


# States that go from step to step.


class Reader(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], keeps: bool = False) -> None:
        super().__init__()
        self.cell, self.head = kind(8, 16, batch_first=True), nn.Linear(16, 10)
        self.keeps, self.state = keeps, None

    def forward(self, x: torch.Tensor, state=None):
        output, state = self.cell(x, self.state if self.keeps else state)
        self.state = state if self.keeps else None
        return (self.head(output[:, -1]), state) if not self.keeps else self.head(output[:, -1])


def reads(steps: int = 4, retain: bool = False, cut: Callable = lambda state: state) -> Callable[..., None]:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        hidden = None
        for x, y in batches(steps):
            optimiser.zero_grad()
            output, hidden = model(x.view(-1, 8, 8), cut(hidden) if hidden is not None else None)
            functional.cross_entropy(output, y).backward(retain_graph=retain)
            optimiser.step()

    return run


def named_by_exception(run: Callable[..., None], model: nn.Module) -> list[str]:
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    watch = sleuth.watch(model, optimiser, directory=None, quiet=True, select=MINE)
    with pytest.raises(RuntimeError), watch:
        run(model, optimiser)
    report = watch.report()
    assert not watch.notes, watch.notes
    return [f.name for c in report.culprits for f in (c.finding, *c.symptoms)]


@pytest.mark.parametrize("retain", [False, True], ids=["used up", "weights changed in place"])
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM])
def test_a_state_that_is_not_detached_explains_the_exception(kind: type[nn.RNNBase], retain: bool) -> None:
    assert named_by_exception(reads(retain=retain), Reader(kind)) == ["hidden-state-not-detached", "backward-fails"]


def test_the_state_and_the_call_are_named() -> None:
    model = Reader(nn.LSTM)
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    watch = sleuth.watch(model, optimiser, directory=None, quiet=True, select=MINE)
    with pytest.raises(RuntimeError), watch:
        hidden = None
        for x, y in batches(3):
            output, hidden = model(x.view(-1, 8, 8), hidden)
            functional.cross_entropy(output, y).backward()
            optimiser.step()
    found = watch.report().culprits[0].finding
    assert found.where == "hidden"
    assert found.location.text == "output, hidden = model(x.view(-1, 8, 8), hidden)"
    assert "hidden = hidden.detach()" in found.fix


def test_a_state_that_a_layer_keeps_for_itself_is_found() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for x, y in batches(4):
            functional.cross_entropy(model(x.view(-1, 8, 8)), y).backward()
            optimiser.step()

    assert named_by_exception(run, Reader(nn.GRU, keeps=True)) == ["hidden-state-not-detached", "backward-fails"]


def test_the_state_of_a_model_that_is_called_by_its_parts_is_found() -> None:
    cell, head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 10)

    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        memory = torch.zeros(1, 32, 16)
        for x, y in batches(4):
            optimiser.zero_grad()
            output, memory = cell(x.view(-1, 8, 8), memory)
            functional.cross_entropy(head(output[:, -1]), y).backward()
            optimiser.step()

    model = nn.ModuleList([cell, head])
    assert named_by_exception(run, model) == ["hidden-state-not-detached", "backward-fails"]


def test_a_total_of_a_model_that_is_called_by_its_parts_is_no_state() -> None:
    cell, head = nn.Linear(64, 16), nn.Linear(16, 10)

    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        total = torch.zeros(())
        for x, y in batches(4):
            optimiser.zero_grad()
            total = total + functional.cross_entropy(head(cell(x).relu()), y)
            total.backward()
            optimiser.step()

    assert named_by_exception(run, nn.ModuleList([cell, head])) == ["graph-retained", "backward-fails"]


def test_a_loss_that_goes_backward_twice_is_neither() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for x, y in batches(2):
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            loss.backward()

    assert named_by_exception(run, mlp()) == ["backward-fails"]


def test_an_exception_that_the_user_catches_is_heard_all_the_same() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        try:
            reads()(model, optimiser)
        except RuntimeError:
            return

    assert only(report_of(run, Reader(nn.GRU))).name == "hidden-state-not-detached"


class OldFashioned(torch.optim.SGD):
    """Writes past the versions that backward looks at, as optimisers did for years."""

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.add_(parameter.grad, alpha=-group["lr"])


def test_a_graph_that_grows_with_every_step_is_named_without_an_exception() -> None:
    model = Reader(nn.GRU)
    found = only(report_of(reads(80, retain=True), model, OldFashioned(model.parameters(), 1e-3)))
    assert (found.name, found.where) == ("hidden-state-not-detached", "hidden")
    assert found.numbers["steps"] >= 24


def test_a_state_that_is_detached_is_healthy() -> None:
    report = report_of(reads(STEPS, cut=lambda state: tuple(part.detach() for part in state)), Reader(nn.LSTM))
    assert not report.findings
    assert "hidden-state-not-detached" in report.clear


def test_a_running_total_that_goes_backward_is_no_recurrent_state() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        total = torch.zeros(())
        for x, y in batches(4):
            total = total + functional.cross_entropy(model(x), y)
            total.backward()
            optimiser.step()

    assert named_by_exception(run, mlp()) == ["graph-retained", "backward-fails"]


# Exceptions that leave the loop.


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, KeyError("x"), RuntimeError("enough"), StopIteration])
def test_an_exception_of_the_users_own_is_no_finding(error: BaseException) -> None:
    training = SimpleNamespace(model=mlp())
    optimiser = torch.optim.Adam(training.model.parameters())
    kind = error if isinstance(error, type) else type(error)
    watch = sleuth.watch(training.model, optimiser, directory=None, quiet=True, select=MINE)
    with pytest.raises(kind), watch:
        plainly(lambda *_: None, 5)(training.model, optimiser)
        raise error
    assert not watch.report().findings


def test_a_batch_that_does_not_fit_the_model_is_explained() -> None:
    def run(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        plainly(lambda *_: None, 5)(model, optimiser)
        model(X[:4, :10])

    assert named_by_exception(run, mlp()) == ["forward-fails"]


# The course of memory.

MB = 1 << 20


def judged(course: list[float], passes: list[int], holder: Holder | None = None):
    engine = Engine([c for c in all_checks() if c.name == "memory-grows"])
    for i, (megabytes, number) in enumerate(zip(course, passes, strict=True)):
        engine.emit(Memory(i * 10, int(megabytes * MB), number, (holder,) if holder and i == len(course) - 1 else ()))
    return engine.judge()


def rising(readings: int = 100, each: float = 3.0) -> list[float]:
    return [300 + each * i for i in range(readings)]


def test_memory_that_rises_through_many_passes_is_told() -> None:
    (found,) = judged(rising(), [1 + i // 10 for i in range(100)]).findings
    assert found.severity is Severity.WARNING


def test_a_list_that_explains_the_rise_is_named() -> None:
    holder = Holder("outputs", "3,120 tensors of shape (64, 10)", 3120, 250 * MB)
    (found,) = judged(rising(), [1 + i // 10 for i in range(100)], holder).findings
    assert (found.where, found.severity) == ("outputs", Severity.ERROR)
    assert "3,120 tensors of shape (64, 10)" in found.summary


@pytest.mark.parametrize(
    ("course", "passes"),
    [
        pytest.param([300 + 3 * min(i, 40) for i in range(100)], [1 + i // 40 for i in range(100)], id="a cache fills and stays"),
        pytest.param([300 + 200 * (1 - 0.95**i) for i in range(100)], [1 + i // 10 for i in range(100)], id="comes to rest"),
        pytest.param([300 + 8 * (i % 10) for i in range(100)], [1 + i // 10 for i in range(100)], id="let go after each epoch"),
        pytest.param([300 + 150 * (i % 7 == 0) for i in range(100)], [1 + i // 10 for i in range(100)], id="validation between"),
        pytest.param([300 + 0.3 * i for i in range(100)], [1 + i // 10 for i in range(100)], id="a log grows a little"),
        pytest.param([300 + 100 * (i > 50) for i in range(100)], [1 + i // 10 for i in range(100)], id="one step up"),
    ],
)
def test_memory_that_comes_to_rest_is_healthy(course: list[float], passes: list[int]) -> None:
    judgement = judged(course, passes)
    assert not judgement.findings
    assert judgement.clear == ("memory-grows",)


@pytest.mark.parametrize("passes", [0, 1])
def test_memory_that_rises_while_data_are_read_for_the_first_time_is_not_judged(passes: int) -> None:
    judgement = judged(rising(), [passes] * 100)
    assert not judgement.findings
    assert "memory rose by" in judgement.not_examined["memory-grows"]
