"""What is healthy in time, precision and waiting stays unsaid, and what is not seen is not judged."""

import time
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import sleuth
from sleuth import Subject
from sleuth.adapters.torch.watching.recorders.synchronisations import Synchronisations
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.history import Seen
from sleuth.core.observation import Step, Synchronisation
from tests.checks.trying import attempt
from tests.material import digits


def watched(loader, model=None, *, passes: int = 1, select: str, log=lambda model, loss: None):
    model = model or nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    with sleuth.watch(model, optimiser, directory=None, quiet=True, select=[select], every=4) as w:
        for _ in range(passes):
            for x, y in loader:
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimiser.step()
                log(model, loss)
    return w


class Slow(Dataset):
    """Only every `stride`th sample takes its time."""

    def __init__(self, seconds: float, stride: int = 1) -> None:
        self.seconds, self.stride = seconds, stride

    def __len__(self) -> int:
        return 640

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        if i % self.stride == 0:
            time.sleep(self.seconds)
        return torch.as_tensor(digits()[0][i]), int(digits()[1][i])


def test_phases_of_a_step_are_measured_and_add_up() -> None:
    w = watched(DataLoader(Slow(0.0005), 16), select="waiting-for-data")
    steps = [s for s in Seen(w.history).all(Step) if "data" in s.seconds]
    assert len(steps) >= 30
    for step in steps:
        assert set(step.seconds) == {"step", "data", "forward", "backward", "optimiser"}
        assert sum(v for k, v in step.seconds.items() if k != "step") <= step.seconds["step"]
        assert step.seconds["data"] >= 16 * 0.0005


def test_a_queue_that_runs_empty_now_and_then_is_no_finding() -> None:
    report = watched(DataLoader(Slow(0.03, stride=64), 16), select="waiting-for-data").report()
    assert not report.findings
    assert "waiting-for-data" in report.clear


class Opened(IterableDataset):
    """What has to be opened before each pass, as workers have to start."""

    def __iter__(self):
        time.sleep(0.03)
        yield from ((torch.as_tensor(x), int(y)) for x, y in zip(digits()[0][:32], digits()[1][:32], strict=True))


def test_what_the_first_batch_of_a_pass_waits_for_is_no_finding() -> None:
    report = watched(DataLoader(Opened(), 32), passes=24, select="waiting-for-data").report()
    assert not report.findings
    assert "each pass over the data has one batch" in report.not_examined["waiting-for-data"]


def test_a_loop_without_a_loader_is_not_examined() -> None:
    x, y = (torch.as_tensor(a) for a in digits())
    report = watched([(x[i : i + 32], y[i : i + 32]) for i in range(0, 1600, 32)], select="waiting-for-data").report()
    assert report.not_examined["waiting-for-data"] == "no step was seen that took its batch from a loader"


def judged(subject: Subject, name: str):
    return attempt(subject, {name}, {"workload"})


@pytest.fixture
def double_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _in_double(model: nn.Module, loss) -> Subject:
    x, y = digits()
    target = (
        torch.as_tensor(y) if isinstance(loss, nn.CrossEntropyLoss) else torch.as_tensor(y, dtype=torch.float64)[:, None] / 10
    )
    loader = DataLoader(TensorDataset(torch.as_tensor(x, dtype=torch.float64)[:256], target[:256]), 32, shuffle=True)
    return Subject(model, loader, loss, torch.optim.Adam(model.parameters(), 1e-3))


def test_double_precision_that_was_asked_for_everywhere_is_meant(double_by_default) -> None:
    model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    report = judged(_in_double(model, nn.CrossEntropyLoss()), "double-precision")
    assert not report.findings
    assert "double-precision" in report.clear


def test_a_regression_may_need_many_digits() -> None:
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    report = judged(_in_double(model, nn.MSELoss()), "double-precision")
    assert not report.findings
    assert "double-precision" in report.clear


def test_an_array_of_float64_that_widens_the_output_is_named_unless_somebody_wrote_a_cast() -> None:
    class Scaled(nn.Module):
        def __init__(self, cast: bool) -> None:
            super().__init__()
            self.fc, self.cast = nn.Linear(64, 10), cast
            self.register_buffer("scale", torch.as_tensor(digits()[0][:1, :10].astype("float64") + 1.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x).double() if self.cast else self.fc(x) * self.scale

    loader = DataLoader(TensorDataset(*(torch.as_tensor(a[:256]) for a in digits())), 32, shuffle=True)
    for cast in (False, True):
        model = Scaled(cast)
        subject = Subject(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), 1e-3))
        found = judged(subject, "double-precision").findings
        assert list(found) == ([] if cast else ["double-precision"])


class StepByStep(nn.Module):
    """A recurrence by hand: a loop over time, which does not grow with the batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps, state = x.unbind(1), torch.zeros_like(x[:, 0])
        for value in steps * 8:
            state = 0.9 * state + torch.tanh(value)
        return state[:, None] + x


def test_a_loop_over_time_is_no_slow_layer() -> None:
    model = nn.Sequential(nn.Linear(64, 64), StepByStep(), nn.Linear(64, 10))
    loader = DataLoader(TensorDataset(*(torch.as_tensor(a[:256]) for a in digits())), 32, shuffle=True)
    subject = Subject(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), 1e-3))
    report = judged(subject, "slow-layer")
    assert not report.findings
    assert "slow-layer" in report.clear


def test_on_the_cpu_nothing_waits_for_a_device() -> None:
    loader = DataLoader(TensorDataset(*(torch.as_tensor(a[:640]) for a in digits())), 16)
    report = watched(loader, select="host-synchronises", log=lambda model, loss: loss.item()).report()
    assert "on the CPU" in report.not_examined["host-synchronises"]
    assert "item" not in vars(torch.Tensor), "nothing was put in place"


def test_calls_that_wait_are_counted_step_by_step(monkeypatch) -> None:
    """On this machine nothing is far away: here every tensor counts as if it were. What is counted, and where, is the same."""
    monkeypatch.setattr(Synchronisations, "is_far", staticmethod(lambda tensor: True))
    loader = DataLoader(TensorDataset(*(torch.as_tensor(a[:640]) for a in digits())), 16)

    def log(model: nn.Module, loss: torch.Tensor) -> None:
        for row in model[2].bias.detach()[:5]:
            row.item()
        assert float(loss.detach()) > 0

    w = watched(loader, select="host-synchronises", log=log)
    assert "item" not in vars(torch.Tensor)
    steps = Seen(w.history).all(Synchronisation)
    # What is logged after a step belongs to the next one.
    assert {tuple(sorted(s.calls.items())) for s in steps[1:]} == {((".item()", 5), ("float(…)", 1))}
    assert {s.location.text for s in steps[1:]} == {"row.item()"}
    finding = w.report().findings[0]
    assert "6 calls a step wait for the device" in finding.summary
    few = Engine([c for c in all_checks() if c.name == "host-synchronises"])
    for step in steps:
        few.emit(replace(step, calls={".item()": 1, "if …:": 1}))
    assert few.judge().clear, "to read the loss, and what a scaler asks, is how everybody works"
