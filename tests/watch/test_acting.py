"""What happens at an error while the training runs: a line, a stop before bad weights, a call; and what the user asserts."""

import time
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import sleuth
from sleuth.core.finding import Finding
from sleuth.core.stage import Confidence, Severity, Stage
from tests.watch.scenarios import SCENARIOS, X, Y, mlp

QUIET = {"quiet": True, "directory": None, "select": ["loss-not-finite", "gradient-not-finite"]}


def poisoned_at(step: int):
    for i in range(40):
        x = X.clone()
        if i == step:
            x[5, 2] = float("nan")
        yield x


def loop(model: nn.Module, optimiser: torch.optim.Optimizer, batches, after=lambda: None) -> None:
    for x in batches:
        optimiser.zero_grad()
        functional.cross_entropy(model(x), Y).backward()
        optimiser.step()
        after()


def plain() -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))


def all_finite(model: nn.Module) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_stop_raises_before_bad_weights_are_written(tmp_path: Path) -> None:
    model = plain()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    steps = []
    with (
        pytest.raises(sleuth.Stopped, match="sample 5 of the batch: its input holds NaN") as caught,
        sleuth.watch(model, optimiser, on_error="stop", **{**QUIET, "directory": tmp_path}) as w,
    ):
        loop(model, optimiser, poisoned_at(12), after=lambda: steps.append(1))
    assert len(steps) == 12
    assert all_finite(model)
    assert all(torch.isfinite(v).all() for s in optimiser.state.values() for v in s.values())
    assert isinstance(caught.value.finding, Finding)
    assert "optimiser.step()" in str(caught.traceback[1].statement)
    assert "sleuth replay" in str(caught.value)
    assert w.report().scenes == (1,)
    assert w.report().culprits[0].finding.name == "loss-not-finite"


def test_a_stop_that_is_caught_is_raised_once() -> None:
    model = plain()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    stops = 0
    with sleuth.watch(model, optimiser, on_error="stop", **QUIET) as w:
        for i in range(20):
            x = X.clone()
            x[3] = float("nan") if i in (5, 9) else 0.5
            optimiser.zero_grad()
            functional.cross_entropy(model(x), Y).backward()
            try:
                optimiser.step()
            except sleuth.Stopped:
                stops += 1
    assert stops == 1
    assert w.watching.steps == 19


def test_a_bad_gradient_that_the_user_throws_away_stops_nothing() -> None:
    model = plain()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    with sleuth.watch(model, optimiser, on_error="stop", **QUIET) as w:
        for x in poisoned_at(7):
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(x), Y)
            loss.backward()
            if torch.isfinite(loss):
                optimiser.step()
    assert w.watching.steps == 39
    assert w.report().culprits[0].finding.name == "loss-not-finite"


def test_one_gradient_among_many_stops_the_training() -> None:
    """It is neither the first nor the last parameter's: only who looks at every gradient sees it."""
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    with pytest.raises(sleuth.Stopped, match=r"gradient of 3\.weight"), sleuth.watch(model, optimiser, on_error="stop", **QUIET):
        for i in range(10):
            optimiser.zero_grad()
            model(torch.randn(4, 8)).pow(2).mean().backward()
            if i == 6:
                model[3].weight.grad[2, 2] = float("inf")
            optimiser.step()
    assert all_finite(model)


def test_a_closure_is_stopped_inside_the_step() -> None:
    model = plain()
    optimiser = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    with pytest.raises(sleuth.Stopped, match="loss-not-finite"), sleuth.watch(model, optimiser, on_error="stop", **QUIET) as w:
        for x in poisoned_at(6):

            def closure(x: torch.Tensor = x) -> torch.Tensor:
                optimiser.zero_grad()
                loss = functional.cross_entropy(model(x), Y)
                loss.backward()
                return loss

            optimiser.step(closure)
    assert all_finite(model)
    assert w.watching.steps == 6


def test_steps_that_a_scaler_skips_are_none_of_our_business() -> None:
    torch.manual_seed(0)
    training = SCENARIOS["autocast_with_scaler"]()
    with sleuth.watch(training.model, training.optimisers, on_error="stop", assert_finite=True, **QUIET) as w:
        for _ in islice(training.loop(), 60):
            pass
    assert w.watching.steps < 60, "the first steps overflow and are skipped"
    assert not w.notes
    assert w.report().status == "healthy"


def test_a_nan_that_a_scaler_throws_away_stops_nothing(tmp_path: Path) -> None:
    model = plain()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    with sleuth.watch(model, optimiser, on_error="stop", **{**QUIET, "directory": tmp_path}) as w:
        for x in poisoned_at(7):
            optimiser.zero_grad()
            scaler.scale(functional.cross_entropy(model(x), Y)).backward()
            scaler.step(optimiser)
            scaler.update()
    assert w.watching.steps == 39
    assert w.report().scenes == ()
    assert all_finite(model)


def test_a_fused_optimiser_that_skips_by_itself_stops_nothing() -> None:
    model = plain()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with sleuth.watch(model, optimiser, on_error="stop", **QUIET):
        for _ in range(20):
            optimiser.zero_grad()
            scaler.scale(functional.cross_entropy(model(X * 100), Y)).backward()
            scaler.step(optimiser)
            scaler.update()
    assert scaler.get_scale() < 2.0**127, "the first steps overflow"
    assert all_finite(model)


def test_warn_is_one_line_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    model = plain()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    said: list[str] = []
    with sleuth.watch(model, optimiser, on_error="warn", **QUIET):
        loop(model, optimiser, poisoned_at(3), after=lambda: said.append(capsys.readouterr().err))
    assert said[3].startswith("sleuth · loss-not-finite: the loss is NaN at step 3")
    assert [line for line in said if line] == [said[3]]
    assert said[3].count("\n") == 1


def test_a_function_is_called_with_the_finding_on_the_training_thread_and_may_raise() -> None:
    model = plain()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    told: list[Finding] = []

    def act(finding: Finding) -> None:
        told.append(finding)
        raise KeyError(finding.name)

    with pytest.raises(KeyError, match="loss-not-finite"), sleuth.watch(model, optimiser, on_error=act, **QUIET) as w:
        loop(model, optimiser, poisoned_at(3))
    assert [f.name for f in told] == ["loss-not-finite"]
    assert w.watching.steps == 3
    assert all_finite(model)


def found_by_a_check(name: str = "loss-diverges") -> Finding:
    return Finding("T404", name, Stage.TRAINING, Severity.ERROR, Confidence.LIKELY, "title", "it rises for good", "why", "fix")


def test_what_a_check_finds_is_acted_on_at_the_next_step(tmp_path: Path) -> None:
    """A loss that really diverges, judged by the thread."""
    model = nn.Linear(12, 1)
    optimiser = torch.optim.SGD(model.parameters(), 0.3)
    target = X.sum(1, keepdim=True)
    began = time.monotonic()
    with (
        pytest.raises(sleuth.Stopped, match="loss-diverges") as caught,
        sleuth.watch(model, optimiser, on_error="stop", quiet=True, directory=tmp_path, select=["loss-diverges"]) as w,
    ):
        rate = 1.0
        while time.monotonic() - began < 60:
            optimiser.zero_grad()
            rate *= 1.004
            (functional.mse_loss(model(X) * rate, target)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            time.sleep(0.002)
    assert isinstance(caught.value.finding, Finding)
    scene = w.report().scene(1)
    assert scene.name == "loss-diverges"
    assert len(scene.facts["steps"]) == 16


def test_symptoms_of_another_error_are_not_acted_on() -> None:
    from dataclasses import replace

    from sleuth.session.on_error import Reactions

    acting = Reactions("stop", None)
    cause, symptom = found_by_a_check("loss-not-finite"), replace(found_by_a_check(), explained_by="loss-not-finite")
    assert [f.name for f in acting.wanted([cause, symptom])] == ["loss-not-finite"]
    assert acting.wanted([cause, symptom]) == []


@pytest.mark.parametrize("given", ["halt", 3, None])
def test_an_unknown_way_to_act_is_refused(given: object) -> None:
    model = plain()
    with pytest.raises(sleuth.UnusableInput, match="on_error"):
        sleuth.watch(model, torch.optim.SGD(model.parameters(), 1e-2), on_error=given, **QUIET)


class TestAssertions:
    def test_a_layer_that_keeps_its_word_is_left_alone(self) -> None:
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), 1e-2)
        told = {"0": sleuth.Expect(shape=(None, 16)), "*": sleuth.Expect(finite=True), "2": sleuth.Expect(low=0.0)}
        with sleuth.watch(model, optimiser, on_error="stop", assertions=told, **QUIET) as w:
            loop(model, optimiser, [X] * 10)
        assert not w.notes

    @pytest.mark.parametrize(
        "expected, words",
        [
            (
                sleuth.Expect(shape=(None, 32)),
                r"the output of 0 \(Linear\) at step 0: expected the shape \(any, 32\), got \(64, 16\)",
            ),
            (sleuth.Expect(high=0.1), r"expected values of at most 0.1, got -"),
            (sleuth.Expect(low=-0.1, high=0.1), r"expected values in -0.1 … 0.1, got -"),
        ],
    )
    def test_a_broken_one_raises_from_the_layer_with_what_was_expected_and_got(self, expected: sleuth.Expect, words: str) -> None:
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), 1e-2)
        with (
            pytest.raises(sleuth.Violated, match=words),
            sleuth.watch(model, optimiser, on_error="stop", assertions={"0": expected}, **QUIET) as w,
        ):
            loop(model, optimiser, [X] * 3)
        assert w.watching.steps == 0
        assert issubclass(sleuth.Violated, sleuth.Stopped)

    def test_otherwise_it_is_noted_in_the_report(self, capsys: pytest.CaptureFixture[str]) -> None:
        for on_error, lines in (("report", 0), ("warn", 1)):
            model = mlp()
            optimiser = torch.optim.SGD(model.parameters(), 1e-2)
            with sleuth.watch(model, optimiser, on_error=on_error, assertions={"0": sleuth.Expect(high=0.1)}, **QUIET) as w:
                loop(model, optimiser, [X] * 5)
            assert w.watching.steps == 5
            (note,) = w.report().notes
            assert "the output of 0 (Linear) at step 0: expected values of at most 0.1" in note
            assert capsys.readouterr().err.count("\n") == lines

    def test_a_function_is_given_it_as_a_finding(self) -> None:
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), 1e-2)
        told: list[Finding] = []
        with sleuth.watch(model, optimiser, on_error=told.append, assertions={"0": sleuth.Expect(high=0.1)}, **QUIET):
            loop(model, optimiser, [X] * 5)
        (finding,) = told
        assert "expected values of at most 0.1" in finding.summary

    def test_a_name_that_no_layer_has_is_refused(self) -> None:
        model = mlp()
        with pytest.raises(sleuth.UnusableInput, match=r"encoder\.\*"):
            sleuth.watch(
                model, torch.optim.SGD(model.parameters(), 1e-2), assertions={"encoder.*": sleuth.Expect(low=0)}, **QUIET
            )

    def test_assert_finite_names_the_first_layer(self, tmp_path: Path) -> None:
        model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        optimiser = torch.optim.SGD(model.parameters(), 1e-2)
        with (
            pytest.raises(sleuth.Violated, match=r"the output of 2 \(Linear\) at step 6: expected finite values, got 64 NaN"),
            sleuth.watch(model, optimiser, on_error="stop", assert_finite=True, **{**QUIET, "directory": tmp_path}) as w,
        ):
            for i in range(10):
                if i == 6:
                    model[2].weight.data[3, 3] = float("nan")
                loop(model, optimiser, [X])
        assert w.report().scenes == (1,)

    def test_assert_finite_without_stop_notes_the_first_layer_only(self) -> None:
        model = plain()
        optimiser = torch.optim.SGD(model.parameters(), 1e-2)
        with sleuth.watch(model, optimiser, assert_finite=True, **QUIET) as w:
            loop(model, optimiser, islice(poisoned_at(3), 4))
        assert [note for note in w.notes if "the output of" in note] == [
            "the output of 0 (Linear) at step 3: expected finite values, got 16 NaN and 0 Inf among 1024 values"
        ]
