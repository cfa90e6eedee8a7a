"""Memory that ran out, and workers that were killed."""

import errno
import os
import signal

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from sleuth.core.observation import OutOfMemory
from tests.script.crashing import explained, finding, report_of_watch, report_without_watch

# No machine has this much address space.
HUGE = 10**14


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 64), nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        return self.head(h.new_empty(HUGE))


def test_what_was_asked_for_and_what_was_held_are_told() -> None:
    def loop(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for _ in range(2):
            optimiser.zero_grad()
            model.head(model.body(torch.rand(32, 8))).pow(2).mean().backward()
            optimiser.step()
        model(torch.rand(32, 8))

    report = report_of_watch(loop, Wide())
    found = report.culprits[0].finding
    assert found.name == "out-of-memory"
    assert found.location.text == "return self.head(h.new_empty(HUGE))"
    assert "with a batch of 32" in found.summary
    assert found.numbers["parameters"] == 4 * (8 * 64 + 64 + 64 * 4 + 4)
    assert found.numbers["gradients"] == found.numbers["parameters"]
    assert found.numbers["optimiser state"] >= 2 * found.numbers["parameters"]
    assert "not even one fits" in found.fix


def test_what_the_loop_keeps_is_named_with_its_line() -> None:
    def loop() -> None:
        kept = []
        for _ in range(4):
            kept.append(torch.ones(1 << 18))
        torch.empty(HUGE)

    (seen,) = [o for o in explained(loop) if isinstance(o, OutOfMemory)]
    largest = next(h for h in seen.largest if h.what == "kept")
    assert (largest.count, largest.bytes) == (4, 4 << 20)
    assert largest.location.text == "kept.append(torch.ones(1 << 18))"


def test_an_array_that_cannot_be_had_is_told() -> None:
    report = report_without_watch(lambda: np.zeros(HUGE))
    assert report.culprits[0].finding.name == "out-of-memory"
    assert "accumulate" not in report.culprits[0].finding.fix


CUDA = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.20 GiB is free. "
    "Including non-PyTorch memory, this process has 22.10 GiB memory in use."
)


def test_the_message_of_a_gpu_is_read() -> None:
    def act() -> None:
        raise torch.OutOfMemoryError(CUDA)

    (seen,) = [o for o in explained(act) if isinstance(o, OutOfMemory)]
    assert (seen.device, seen.asked, seen.free) == ("cuda:0", int(2.5 * 2**30), int(1.2 * 2**30))
    assert seen.total == int(23.69 * 2**30)


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_other_words_for_it_are_known(error: Exception) -> None:
    def act() -> None:
        raise error

    finding(report_without_watch(act), "out-of-memory")


def test_another_runtime_error_is_no_want_of_memory() -> None:
    def act() -> None:
        raise OSError(errno.ENOENT, "no such file")

    assert not report_without_watch(act).findings


class Killed(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(1)


class Gone(Killed):
    def __getitem__(self, i: int) -> torch.Tensor:
        os._exit(3)


class Raising(Killed):
    def __getitem__(self, i: int) -> torch.Tensor:
        return {}["missing"]


def read(data: Dataset) -> None:
    for _ in DataLoader(data, num_workers=2):
        pass


@pytest.mark.parametrize(
    ("data", "got", "cure"), [(Killed(), "killed by SIGKILL", "fewer workers"), (Gone(), "exit code 3", "num_workers=0")]
)
def test_a_worker_that_is_gone_is_told_plainly(data: Dataset, got: str, cure: str) -> None:
    report = report_without_watch(read, data)
    found = report.culprits[0].finding
    assert f"one of 2 workers (num_workers=2) {'gone with ' if 'code' in got else ''}{got}" in found.summary
    assert cure in found.fix
    assert found.location.text == "for _ in DataLoader(data, num_workers=2):"


def test_an_exception_of_a_worker_stands_at_the_line_of_the_data_set() -> None:
    report = report_without_watch(read, Raising())
    assert not report.findings
    assert 'return {}["missing"]' in report.notes[0]
    assert "waiting for its data" in report.notes[0]
