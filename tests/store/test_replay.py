"""A run that is read back says what was said live: every finding with its numbers, everything clear, everything not examined."""

import threading
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import sleuth
import sleuth.session.watch
from sleuth.cli import main
from sleuth.core.history import History, Thinned
from sleuth.core.observation import Architecture, Role, Step
from sleuth.store.reading import Run, files_of
from sleuth.testing import Elsewhere
from sleuth.testing.cases import Case, discover
from tests.kits.torch_kit import TorchKit
from tests.watch import scenarios
from tests.watched import watched

LOOPS = ("adam", "lbfgs_closure", "gan", "accumulation", "autocast_with_scaler", "clipping_and_schedule", "lstm")


def sick(damage: Callable[[nn.Module, torch.optim.Optimizer], Any]) -> scenarios.Training:
    training = scenarios.adam()
    training.model.train()
    damage(training.model, training.optimisers[0])
    return training


def forgotten_zero_grad() -> scenarios.Training:
    return sick(lambda model, optimiser: setattr(optimiser, "zero_grad", lambda: None))


def rate_far_too_high() -> scenarios.Training:
    return sick(lambda model, optimiser: optimiser.param_groups[0].update(lr=1e3))


def weights_overflow() -> scenarios.Training:
    return sick(lambda model, optimiser: model[0].weight.data.mul_(1e38))


SURELY_SICK = (weights_overflow,)


def watch(training: scenarios.Training, folder: Path, steps: int, **options: Any) -> sleuth.Report:
    with sleuth.watch(training.model, training.optimisers, directory=folder, quiet=True, **options) as w:
        for _ in islice(training.loop(), steps):
            pass
        w.log(val_loss=0.5, accuracy=0.75)
    return w.report()


def said(report: sleuth.Report) -> dict[str, Any]:
    return {key: value for key, value in report.to_dict().items() if key != "source"}


def replayed(folder: Path) -> sleuth.Report:
    (run,) = folder.iterdir()
    return sleuth.load(run)


@pytest.mark.parametrize("every", [1, 7, None])
@pytest.mark.parametrize(
    "make",
    [*(scenarios.SCENARIOS[name] for name in LOOPS), forgotten_zero_grad, rate_far_too_high, *SURELY_SICK],
    ids=lambda make: make.__name__,
)
def test_a_replay_says_what_live_said(make: Callable[[], scenarios.Training], every: int | None, tmp_path: Path) -> None:
    live = watch(make(), tmp_path, 60, every=every)
    again = replayed(tmp_path)
    assert again.source == "replay"
    assert said(again) == said(live)
    if make in SURELY_SICK:
        assert live.findings


def test_a_long_run_that_was_thinned_live_is_thinned_alike(tmp_path: Path) -> None:
    live = watch(rate_far_too_high(), tmp_path, 2500, every=2)
    again = replayed(tmp_path)
    assert live.findings
    assert again.steps == live.steps > 2048
    assert said(again) == said(live)


@settings(deadline=None)
@given(count=st.integers(0, 400), capacity=st.integers(1, 20))
def test_recalling_keeps_what_appending_kept(count: int, capacity: int) -> None:
    appended, recalled = Thinned(capacity), Thinned(capacity)
    for item in range(count):
        appended.append(item)
    recalled.recall(count, lambda place: place)
    assert (list(recalled), len(recalled)) == (list(appended), len(appended))
    for item in range(count, count + 3):  # and goes on alike
        appended.append(item)
        recalled.append(item)
    assert list(recalled) == list(appended)


def test_a_history_that_was_recalled_is_the_one_that_was_seen(tmp_path: Path) -> None:
    watch(scenarios.gan(), tmp_path, 600, every=1)
    (folder,) = tmp_path.iterdir()
    recalled, seen = History(), History()
    with Run(*files_of(folder)) as run:
        run.recall(recalled)
        for observation in run.observations():
            seen.add(observation)
    assert recalled.single(Architecture) == seen.single(Architecture)
    assert recalled.many(Step) == seen.many(Step)
    for role in Role:
        frames = [(f.step, f.paths, f.table.tobytes()) for f in seen.many(role)]
        assert [(f.step, f.paths, f.table.tobytes()) for f in recalled.many(role)] == frames
        assert recalled.count(role) == seen.count(role)
    assert seen.count(Role.WEIGHT) > len(seen.many(Role.WEIGHT))


def test_a_run_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    training = scenarios.gan()
    with sleuth.watch(training.model, training.optimisers, directory=tmp_path, quiet=True, every=1) as w:
        stop = threading.Event()

        def train() -> None:
            for _ in training.loop():
                if stop.is_set():
                    return

        thread = threading.Thread(target=train)
        thread.start()
        try:
            seen = [0]
            while len(seen) < 6:
                report = replayed(tmp_path)
                assert any("still going on" in note for note in report.notes)
                if report.steps > seen[-1]:
                    # Everything comes from one moment: no step without its frames.
                    assert len(report.statistics("gradient").steps) <= len(report.curves()["lr"].steps) * 2
                    seen.append(report.steps)
        finally:
            stop.set()
            thread.join()
    assert replayed(tmp_path).steps == w.report().steps


def test_two_watches_of_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    for _ in range(2):
        watch(scenarios.adam(), tmp_path, 5)
    assert [sleuth.load(run).steps for run in tmp_path.iterdir()] == [5, 5]


def test_of_several_processes_the_first_is_shown_and_the_others_are_named(tmp_path: Path) -> None:
    watch(scenarios.adam(), tmp_path, 5)
    (run,) = tmp_path.iterdir()
    for rank in (10, 2):
        (run / f"rank{rank}.sqlite").write_bytes((run / "rank0.sqlite").read_bytes())
    assert [file.name for file in files_of(run)] == ["rank0.sqlite", "rank2.sqlite", "rank10.sqlite"]
    report = sleuth.load(run)
    assert report.steps == 5
    assert any("rank2.sqlite, rank10.sqlite" in note for note in report.notes), report.notes
    assert sleuth.load(run / "rank2.sqlite").steps == 5


def test_a_finished_run_is_one_file(tmp_path: Path) -> None:
    watch(scenarios.adam(), tmp_path, 5)
    (run,) = tmp_path.iterdir()
    assert [file.name for file in run.iterdir()] == ["rank0.sqlite"]
    # Not in write-ahead mode any more, in which SQLite wants to write even where it only reads.
    assert (run / "rank0.sqlite").read_bytes()[18:20] == b"\x01\x01"


def test_the_command_shows_a_run(tmp_path: Path) -> None:
    live = watch(weights_overflow(), tmp_path, 20)
    (run,) = tmp_path.iterdir()
    shown = CliRunner().invoke(main, ["report", str(run)])
    assert shown.exit_code == 0
    assert live.culprits[0].finding.name in shown.output


CASES = [case for case in discover(Path(__file__).parents[1] / "cases") if case.source == "watch"]


@pytest.mark.long
@pytest.mark.parametrize("variant", ["sick", "healthy"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_replay_of_every_case_says_what_live_said(case: Case, variant: str, tmp_path: Path) -> None:
    try:
        training = getattr(case, variant)(TorchKit())
    except Elsewhere as reason:
        pytest.skip(str(reason))
    live = watched(training, directory=tmp_path)
    assert said(replayed(tmp_path)) == said(live)
