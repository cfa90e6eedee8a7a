"""A watch lives as long as somebody holds it, and lets go of everything when it ends."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth.adapters.torch.watching import patches
from sleuth.core.observation import Ending
from tests.watch.scenarios import X, Y

OPTIONS = {"directory": None, "quiet": True}


def parts() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
    return model, torch.optim.Adam(model.parameters(), 1e-3)


def train(model: nn.Module, optimiser: torch.optim.Optimizer, steps: int = 5) -> None:
    for _ in range(steps):
        optimiser.zero_grad()
        functional.cross_entropy(model(X), Y).backward()
        optimiser.step()


def threads() -> int:
    return sum(thread.name == "sleuth" for thread in threading.enumerate())


def wait_until(holds, seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not holds() and time.monotonic() < ends:
        time.sleep(0.01)
    assert holds()


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    backward = torch.Tensor.backward
    yield
    assert torch.Tensor.backward is backward
    assert not patches.LISTENERS
    wait_until(lambda: threads() == 0)


def test_a_watch_that_is_let_go_ends_by_itself() -> None:
    model, optimiser = parts()
    watch = sleuth.watch(model, optimiser, **OPTIONS)
    train(model, optimiser)
    assert threads() == 1
    gone = weakref.ref(watch)
    del watch
    assert gone() is None
    assert not patches.LISTENERS
    wait_until(lambda: threads() == 0)
    assert not optimiser._optimizer_step_pre_hooks
    train(model, optimiser)


def test_a_name_that_is_given_anew_ends_the_watch_before() -> None:
    """A cell of a notebook runs again."""
    model, optimiser = parts()
    for _ in range(3):
        watch = sleuth.watch(model, optimiser, **OPTIONS)
        train(model, optimiser)
    assert watch.report().steps == 5
    assert len(patches.LISTENERS) == 1
    watch.close()


def test_what_a_watch_saw_until_it_was_let_go_is_in_its_file(tmp_path: Path) -> None:
    model, optimiser = parts()
    watch = sleuth.watch(model, optimiser, directory=tmp_path, quiet=True)
    train(model, optimiser, 7)
    del watch
    (folder,) = tmp_path.iterdir()
    assert sleuth.load(folder).steps == 7


def test_a_watch_that_nobody_keeps_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    model, optimiser = parts()
    sleuth.watch(model, optimiser, directory=None)
    assert "w = sleuth.watch(" in capsys.readouterr().err


def test_model_and_optimiser_can_be_collected_after_the_watch() -> None:
    model, optimiser = parts()
    with sleuth.watch(model, optimiser, **OPTIONS) as watch:
        train(model, optimiser, 20)
    references = [weakref.ref(model), weakref.ref(optimiser), weakref.ref(model[0].weight)]
    del model, optimiser
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
    assert watch.report().steps == 20


def test_a_failed_training_can_be_collected_too() -> None:
    def fail() -> tuple:
        model, optimiser = parts()
        watch = sleuth.watch(model, optimiser, **OPTIONS)
        with pytest.raises(RuntimeError), watch:
            train(model, optimiser)
            model(torch.ones(2, 3))
        return weakref.ref(model), watch

    gone, watch = fail()
    gc.collect()
    assert gone() is None
    assert watch.report().steps == 5


def test_a_batch_is_not_kept_by_the_watch() -> None:
    model, optimiser = parts()
    with sleuth.watch(model, optimiser, every=1, **OPTIONS):
        for _ in range(40):
            x = X.clone()
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(x), Y)
            loss.backward()
            optimiser.step()
        gone = weakref.ref(x), weakref.ref(loss)
        del x, loss
        assert [reference() for reference in gone] == [None, None]


def test_an_exception_says_how_the_training_ended() -> None:
    for error, how in ((KeyboardInterrupt, "interrupted"), (ValueError, "failed")):
        model, optimiser = parts()
        watch = sleuth.watch(model, optimiser, **OPTIONS)
        with pytest.raises(error), watch:
            raise error
        (ending,) = watch.history.many(Ending)
        assert ending.how == how


SCRIPT = """
    import sys, torch, sleuth
    from torch import nn
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    w = sleuth.watch(model, optimiser, directory=sys.argv[1])
    for _ in range(6):
        optimiser.zero_grad()
        model(torch.randn(8, 12)).pow(2).mean().backward()
        optimiser.step()
"""


def run_script(folder: Path, more: str = "") -> subprocess.CompletedProcess[str]:
    code = textwrap.dedent(SCRIPT) + textwrap.dedent(more)
    return subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=120)


def test_a_script_that_ends_without_close_ends_its_watch(tmp_path: Path) -> None:
    ran = run_script(tmp_path)
    assert ran.returncode == 0
    assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
    assert "6 steps" in ran.stderr
    (folder,) = tmp_path.iterdir()
    report = sleuth.load(folder)
    assert report.steps == 6
    assert not [note for note in report.notes if "did not come to its end" in note]


def test_a_script_that_dies_keeps_its_exit_code_and_is_explained(tmp_path: Path) -> None:
    ran = run_script(tmp_path, "model(torch.randn(8, 3))")
    assert ran.returncode == 1
    assert "forward-fails" in ran.stderr
    (folder,) = tmp_path.iterdir()
    assert sleuth.load(folder).culprits[0].finding.name == "forward-fails"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_process_leaves_the_watch_of_its_parent_alone(tmp_path: Path) -> None:
    ran = run_script(
        tmp_path,
        """
        import os
        child = os.fork()
        if not child:
            sys.exit(0)
        os.waitpid(child, 0)
        model(torch.randn(8, 12)).pow(2).mean().backward()
        optimiser.step()
        """,
    )
    assert ran.returncode == 0, ran.stderr
    assert len([line for line in ran.stderr.splitlines() if line.startswith("sleuth")]) == 1, ran.stderr
    (folder,) = tmp_path.iterdir()
    assert sleuth.load(folder).steps == 7


def held() -> int:
    _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_memory_stays_where_it_is_over_twenty_thousand_steps(tmp_path: Path) -> None:
    model, optimiser = parts()
    with sleuth.watch(model, optimiser, directory=tmp_path, quiet=True) as watch:
        # The history is full after some thousand steps.
        train(model, optimiser, 5_000)
        watch.report()
        gc.collect()
        bytes_before, objects_before = held(), len(gc.get_objects())
        train(model, optimiser, 15_000)
        watch.report()
        gc.collect()
        bytes_after, objects_after = held(), len(gc.get_objects())
    assert bytes_after <= 1.05 * bytes_before, (bytes_before, bytes_after)
    assert objects_after <= 1.05 * objects_before, (objects_before, objects_after)
