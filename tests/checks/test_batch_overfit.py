"""Memorising one batch: healthy trainings whose loss cannot reach zero, or reaches it slowly, are not accused."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Report, Subject, examine
from sleuth.core.contract.adapter import Bench
from sleuth.probes.lab.probe import Lab
from tests.kits.torch_kit import TorchKit
from tests.material import cancer, diabetes, digits

KIT = TorchKit()
NAMES = ["cannot-overfit-one-batch", "learns-without-input"]


def judge(subject: Subject, **options: Any) -> Report:
    return examine(subject, select=NAMES, progress=False, **options)


def adam(model: nn.Module, lr: float = 1e-2) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr)


def test_a_smoothed_loss_is_judged_against_its_floor() -> None:
    model = KIT.mlp(64, 32, 10)
    report = judge(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(label_smoothing=0.2), adam(model)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


def test_soft_targets_are_judged_against_their_entropy() -> None:
    x, y = digits()
    soft = (0.7 * np.eye(10)[y] + 0.03).astype(np.float32)
    model = KIT.mlp(64, 32, 10)
    report = judge(Subject(model, KIT.loader(x, soft), nn.CrossEntropyLoss(), adam(model)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


def test_soft_binary_targets_are_judged_against_their_entropy() -> None:
    x, y = cancer()
    model = KIT.mlp(30, 32, 1)
    loader = KIT.loader(x, (0.2 + 0.6 * y[:, None]).astype(np.float32))
    report = judge(Subject(model, loader, nn.BCEWithLogitsLoss(), adam(model)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


def test_a_line_is_not_asked_for_more_points_than_it_has_parameters() -> None:
    model = KIT.linear(10, 1)
    report = judge(Subject(model, KIT.loader(*diabetes()), nn.MSELoss(), adam(model)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


def test_strong_dropout_does_not_hide_what_was_learned() -> None:
    widths = (64, 64, 64, 64)
    blocks = [m for a, b in itertools.pairwise(widths) for m in (nn.Linear(a, b), nn.ReLU(), nn.Dropout(0.5))]
    model = nn.Sequential(*blocks, nn.Linear(64, 10))
    report = judge(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), adam(model, 1e-3)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_a_slow_rate_is_not_taken_for_a_fault_of_the_model(name: str) -> None:
    model = KIT.mlp(64, 64, 32, 32, 10)
    report = judge(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), KIT.optimiser(model, name, lr=1e-4)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


def test_a_warm_up_that_holds_the_rate_at_zero_is_passed_over() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = adam(model)
    torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(step / 100, 1.0))
    assert optimiser.param_groups[0]["lr"] == 0
    names = [*NAMES, "step-changes-nothing", "optimiser-setting-odd", "learning-rate-too-low", "loss-not-decreasing"]
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), optimiser)
    report = examine(subject, select=names, progress=False)
    assert not report.findings, report.to_text()
    assert "a schedule holds" in report.not_examined["optimiser-setting-odd"]


def test_a_narrow_autoencoder_memorises_as_many_samples_as_its_code_holds() -> None:
    x, _ = digits()
    model = KIT.mlp(64, 32, 4, 32, 64)
    report = judge(Subject(model, KIT.loader(x, x), nn.MSELoss(), adam(model)))
    assert not report.findings


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(17, 16)
        self.recurrent = nn.GRU(16, 64, batch_first=True)
        self.head = nn.Linear(64, 17)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(self.embedding(ids))[0]).transpose(1, 2)


def test_beginnings_that_go_on_differently_are_not_asked_of_a_language_model() -> None:
    ids = (digits()[0] * 16).round().astype(np.int64)[:, :33]  # all images begin with the same blank pixels
    model = Recurrent()
    report = judge(Subject(model, KIT.loader(ids[:, :-1], ids[:, 1:]), nn.CrossEntropyLoss(), adam(model)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


def test_the_floor_of_a_loss_of_ones_own_is_not_guessed() -> None:
    def offset(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target).pow(2).mean() + 3

    model = KIT.mlp(10, 32, 1)
    report = judge(Subject(model, KIT.loader(*diabetes()), offset, adam(model)))
    assert not report.findings
    assert "not known" in report.not_examined["cannot-overfit-one-batch"]


def test_equal_inputs_with_different_targets_are_left_out() -> None:
    x, y = diabetes()
    twice = np.repeat(x[:64], 2, axis=0)
    model = KIT.mlp(10, 64, 1)
    loader = KIT.loader(twice, y[:128], shuffle=False)
    report = judge(Subject(model, loader, nn.MSELoss(), adam(model)))
    assert not report.findings
    assert "cannot-overfit-one-batch" in report.clear


def test_noise_that_drowns_every_sample_is_named() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = KIT.mlp(64, 32, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x + 30 * torch.randn_like(x))

    model = Noisy()
    report = judge(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), adam(model)))
    assert report.culprits[0].finding.name == "cannot-overfit-one-batch"


def test_time_that_runs_out_is_said() -> None:
    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = KIT.mlp(64, 32, 1, 10, activation="tanh")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            ticks[0] += 0.5
            return self.net(x)

    ticks = [0.0]
    from sleuth.api import examine_subject

    model = Slow()
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), adam(model))
    report = examine_subject(subject, select=NAMES, progress=False, clock=lambda: ticks[0])
    assert not report.findings
    reason = report.not_examined["cannot-overfit-one-batch"]
    assert "time" in reason or "cut off" in reason


def test_the_search_for_a_rate_leaves_the_bench_as_it_was() -> None:
    from sleuth.adapters import adapter_for
    from sleuth.probes.batch.overfit import overfit
    from sleuth.probes.data.reading import reading
    from sleuth.probes.hyperparameters.range_test import range_test
    from sleuth.probes.training.short_training import short_training

    model = KIT.mlp(64, 16, 10)
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), adam(model))
    adapter = adapter_for(model)
    lab = Lab(subject, adapter, 60)
    with adapter.bench(subject) as bench:
        lab.bench_ = bench
        list(reading.run(lab))
        before = state(bench)
        for probe in (overfit, range_test, short_training):
            list(probe.run(lab))
            assert state(bench) == before, probe.name


def state(bench: Bench) -> tuple[Any, ...]:
    weights = tuple(bench.parameter(p).detach().numpy().tobytes() for p in bench.paths())
    return weights, bench.lr, torch.get_rng_state().numpy().tobytes()


class SlowAtFirst(nn.Module):
    """As what is compiled: the first batch that it learns from takes its time."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.layers, self.always, self.learned = KIT.mlp(64, 16, 10), always, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        learns = self.training and torch.is_grad_enabled()
        SlowAtFirst.clock += 2.0 if learns and (self.always or not self.learned) else 0.001
        self.learned += learns
        return self.layers(x)

    clock = 0.0


@pytest.mark.parametrize(("always", "samples"), [(False, 16), (True, 8)])
def test_a_first_step_that_is_compiled_is_no_measure_of_the_others(always: bool, samples: int) -> None:
    from sleuth.adapters import adapter_for
    from sleuth.core.trial import Overfit
    from sleuth.probes.batch.overfit import overfit
    from sleuth.probes.data.reading import reading

    model = SlowAtFirst(always)
    adapter = adapter_for(model)
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), adam(model))
    lab = Lab(subject, adapter, 900, clock=lambda: SlowAtFirst.clock)
    with adapter.bench(subject) as bench:
        lab.bench_ = bench
        list(reading.run(lab))
        (found,) = [trial for trial in overfit.run(lab) if isinstance(trial, Overfit)]
    assert found.samples == samples


def test_one_answer_for_all_costs_the_entropy_of_the_labels() -> None:
    from sleuth.probes.batch.floors import _label_entropy, _surprise

    assert _label_entropy(np.array([[0], [0], [1], [1]]), -100) == pytest.approx(math.log(2))
    assert _label_entropy(np.array([[0, -100], [1, 5]]), -100) == pytest.approx(math.log(2) * 2 / 3)
    tokens = np.array([[1, 2], [1, 3]])
    assert _surprise(tokens, np.array([[2, 0], [3, 0]])) == pytest.approx(math.log(2) / 2)
