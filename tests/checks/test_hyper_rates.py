"""The range test: one rate with its reason, the curve kept, nothing left behind."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Subject
from sleuth.adapters import adapter_for
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.observation import Step
from sleuth.core.settings import Configuration
from sleuth.core.trial import RangeTest
from sleuth.probes.data.reading import reading
from sleuth.probes.hyperparameters import decay_trial, gradient_noise, long_training, range_test
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.rates import suggest
from sleuth.session.report import build_report
from tests.checks.trying import attempt
from tests.kits.torch_kit import TorchKit
from tests.material import digits

KIT = TorchKit()
LOW, HIGH = "learning-rate-too-low", "learning-rate-too-high"


def training(lr: float, optimiser: Any = torch.optim.Adam, model: nn.Module | None = None, **options: Any) -> Subject:
    model = model or nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    return Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), optimiser(model.parameters(), lr=lr, **options))


@pytest.mark.parametrize(("name", "lr"), [(LOW, 1e-6), (HIGH, 20.0)])
def test_a_finding_keeps_the_curve_and_gives_one_rate_with_its_reason(name: str, lr: float) -> None:
    outcome = attempt(training(lr, torch.optim.SGD, KIT.mlp(64, 64, 32, 10)), {name}, {"overfit", "range_test"})
    finding, test = outcome.findings[name], outcome.history.single(RangeTest)
    (curve,) = finding.series
    assert curve.y == test.losses
    assert curve.x == pytest.approx(np.log10(test.rates))
    assert f"to {finding.numbers['suggested']:.1g} (" in finding.fix
    assert test.reason in finding.fix or "a tenth of yours" in finding.fix


def test_the_curve_stands_in_the_json_report() -> None:
    engine = Engine(all_checks(), Configuration(select=(LOW,)))
    engine.history = attempt(training(1e-7), {LOW}, {"overfit", "range_test"}).history
    report = build_report(engine, source="examine", framework="torch", subject="", seconds=0.0)
    (series,) = json.loads(report.to_json())["culprits"][0]["series"]
    assert len(series["x"]) == len(series["y"]) > 30


def test_batches_that_differ_much_do_not_hide_a_rate_that_is_too_low() -> None:
    """Of four samples, some batches have far larger errors than others; what each of them gains is sure all the same."""
    x, y = digits()
    model = KIT.mlp(64, 32, 1)
    loader = KIT.loader(x, ((y - 4.5) / 2.9).astype(np.float32)[:, None], batch_size=4)
    subject = Subject(model, loader, nn.MSELoss(), torch.optim.Adam(model.parameters(), lr=1e-7))
    outcome = attempt(subject, {LOW}, {"overfit", "range_test"})
    assert LOW in outcome.findings
    assert outcome.findings[LOW].numbers["start"] < 5 * outcome.history.single(RangeTest).noise


def test_the_suggestion_is_the_rate_that_got_the_loss_down_not_one_at_which_it_stays_there() -> None:
    rates = np.geomspace(1e-6, 100, 80)
    losses = np.where(rates < 1e-2, 2.3, 1e-4 / (1 + rates))
    suggested, _ = suggest(rates.tolist(), losses.tolist())
    assert suggested is not None
    assert 1e-3 < suggested < 2e-2


@pytest.mark.parametrize("options", [{"optimiser": torch.optim.SGD, "momentum": 0.9, "weight_decay": 0.3}, {}])
def test_every_experiment_on_hyperparameters_puts_everything_back(options: dict[str, Any]) -> None:
    subject = training(0.01, **options)
    adapter = adapter_for(subject.model)
    lab = Lab(subject, adapter, 300)
    with adapter.bench(subject) as bench:
        lab.bench_ = bench
        list(reading.run(lab))
        bench.step(lab.batch)
        before = everything(bench)
        for module in (range_test, gradient_noise, decay_trial, long_training):
            probe = getattr(module, module.__name__.rsplit(".", 1)[1])
            assert list(probe.run(lab))
            assert everything(bench) == before, probe.name


def everything(bench: Any) -> tuple[Any, ...]:
    """Weights, buffers, moments, settings of every group, modes and random numbers."""
    tensors = tuple(t.detach().numpy().tobytes() for t in bench.model.state_dict().values())
    state = bench.optimiser.state_dict()
    moments = tuple(sorted((i, k, str(v)) for i, s in state["state"].items() for k, v in s.items()))
    groups = tuple(str({k: v for k, v in g.items() if k != "params"}) for g in state["param_groups"])
    modes = tuple(m.training for m in bench.model.modules())
    return tensors, moments, groups, modes, torch.get_rng_state().numpy().tobytes(), str(np.random.get_state())


def test_a_rate_that_blows_up_at_once_is_not_named_where_the_training_warmed_up_to_it_and_learned() -> None:
    """The experiment takes the full rate from the first step on."""
    engine = Engine(all_checks(), Configuration(select=(HIGH,)))
    engine.history = attempt(training(20.0, torch.optim.SGD, KIT.mlp(64, 64, 32, 10)), {HIGH}, {"overfit", "range_test"}).history
    test = engine.history.single(RangeTest)
    assert test is not None
    engine.emit(replace(test, runs=tuple((rate, s, None if rate == test.current else e) for rate, s, e in test.runs)))
    assert engine.find(HIGH) is not None
    for step in range(200):
        engine.emit(Step(step, loss=2.3 / (1 + step / 20), lr=20.0 * min(1.0, (step + 1) / 100)))
    assert engine.find(HIGH) is None
