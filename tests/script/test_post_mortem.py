"""What ended a script is told, whoever is to blame; an exception that was raised on purpose accuses nobody."""

import pytest
import torch
from torch import nn

import sleuth
from sleuth.core.observation import Crash, Entry, Held, Misfit, OutOfMemory, OutOfRange
from sleuth.script.post_mortem import explain_crash, is_meant
from sleuth.store.codec import decode, encode
from tests.script.crashing import X, Y, explained, mlp, raised_by, report_of_watch, report_without_watch


class Converged(Exception):
    pass


class EarlyStopping(RuntimeError):
    pass


class ConfigError(Exception):
    pass


def train(model: nn.Module, optimiser: torch.optim.Optimizer, steps: int = 3) -> None:
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(X), Y).backward()
        optimiser.step()


def raiser(error: BaseException):
    def loop(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        train(model, optimiser)
        raise error

    return loop


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), StopIteration(), Converged(), EarlyStopping("patience")])
def test_an_exception_that_is_meant_accuses_nobody(error: BaseException) -> None:
    def act() -> None:
        raise error

    assert is_meant(raised_by(act))
    assert explained(act) == []


def test_a_watch_that_is_left_by_early_stopping_died_of_nothing() -> None:
    report = report_of_watch(raiser(Converged()), mlp())
    assert (report.findings, report.notes) == ((), ())
    assert report.unanswered.startswith("only 3 steps were heard")


@pytest.mark.parametrize("error", [ValueError("bad value"), KeyError("lr"), ConfigError("no lr"), AssertionError()])
def test_an_exception_that_nobody_knows_is_a_note_with_the_users_line_and_no_illness(error: Exception) -> None:
    report = report_of_watch(raiser(error), mlp())
    assert report.status == "unknown"
    assert not report.findings
    (note,) = report.notes
    assert f"died of {type(error).__name__}" in note
    assert "test_post_mortem.py:" in note
    assert "(raise error)" in note
    assert "after 3 steps" in note


def test_the_note_says_what_was_going_on() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ZeroDivisionError("in forward")

    report = report_of_watch(train, Broken())
    assert "while step 0 was in the forward pass" in report.notes[0]
    assert 'raise ZeroDivisionError("in forward")' in report.notes[0]


def test_a_crash_that_is_explained_is_sick_and_says_where_it_died_too() -> None:
    report = report_without_watch(lambda: mlp().load_state_dict({}))
    assert report.status == "sick"
    assert "died of RuntimeError" in report.notes[0]


def test_a_run_that_is_read_again_is_no_healthier(tmp_path) -> None:
    model = mlp()
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    with pytest.raises(ValueError), sleuth.watch(model, optimiser, directory=tmp_path, quiet=True):
        raiser(ValueError("bad value"))(model, optimiser)
    (folder,) = tmp_path.iterdir()
    report = sleuth.load(folder)
    assert report.status == "unknown"
    assert "died of ValueError" in report.notes[0]
    saved = report.save(tmp_path / "report.json")
    assert sleuth.load(saved).status == "unknown"


def test_the_cause_behind_an_exception_is_explained() -> None:
    def act() -> None:
        try:
            mlp().load_state_dict({})
        except RuntimeError as error:
            raise ValueError("cannot resume") from error

    misfit, crash = explained(act)
    assert isinstance(misfit, Misfit)
    assert isinstance(crash, Crash)
    assert (crash.error, crash.message) == ("ValueError", "cannot resume")


def test_a_reader_that_fails_hides_nothing() -> None:
    def broken(error: BaseException) -> list:
        raise RuntimeError("ours")

    (crash,) = explain_crash(raised_by(lambda: 1 / 0), [broken], steps=7)
    assert isinstance(crash, Crash)
    assert (crash.error, crash.step) == ("ZeroDivisionError", 7)


def test_nothing_happened_without_an_exception() -> None:
    assert explain_crash(None) == []


@pytest.mark.parametrize(
    "seen",
    [
        Crash(3, "ValueError", "x", "forward"),
        OutOfRange("embedding", "emb", 5, 0, 7),
        Misfit("names", "Net", (Entry("a", (1, 2)),), (Entry("b"),), ((Entry("c", (1,)), Entry("c", (2,))),)),
        OutOfMemory(1, "cpu", 10, None, 20, (Held("parameters", 4, 2),), (Held("x", 1, 1, (3,)),)),
    ],
)
def test_what_is_told_survives_the_store(seen) -> None:
    assert decode(encode(seen)) == seen
