"""A model's size is judged by what simple learners get out of the same samples."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Subject
from sleuth.core.trial import LongTraining
from sleuth.probes.hyperparameters.long_training import _by_chance
from sleuth.probes.learners.plain_learners import answers
from sleuth.probes.learners.scoring import as_answers, task_of
from tests.checks.trying import Outcome, attempt
from tests.kits.torch_kit import TorchKit
from tests.material import cancer, diabetes, digits

KIT = TorchKit()
SMALL, LARGE = "capacity-too-small", "capacity-too-large"
Arrays = tuple[np.ndarray, np.ndarray]


def judge(model: nn.Module, data: Arrays, loss: Any, *, lr: float = 1e-2, held_out: Arrays | None = None) -> Outcome:
    validation = None if held_out is None else KIT.loader(*held_out, shuffle=False)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    subject = Subject(model, KIT.loader(*data), loss, optimiser, validation)
    return attempt(subject, {SMALL, LARGE}, {"overfit", "start", "long_training"})


def split(data: Arrays, count: int) -> tuple[Arrays, Arrays]:
    order = np.random.default_rng(0).permutation(len(data[0]))
    first, rest = ((data[0][rows], data[1][rows]) for rows in (order[:count], order[count:]))
    return first, rest


def worth() -> Arrays:
    x, y = digits()
    return x, ((y - y.mean()) / y.std()).astype(np.float32)[:, None]


def test_a_line_cannot_tell_what_a_digit_is_worth() -> None:
    finding = judge(KIT.mlp(64, 1), worth(), nn.MSELoss()).findings[SMALL]
    assert 0.5 < finding.numbers["score"] < 0.7
    assert finding.numbers["learner_score"] > 0.9
    assert len(finding.series) == 2


def test_a_line_is_large_enough_to_tell_digits_apart() -> None:
    outcome = judge(KIT.mlp(64, 10), digits(), nn.CrossEntropyLoss())
    assert {SMALL, LARGE} <= set(outcome.clear)


def test_labels_that_nobody_can_learn_are_no_matter_of_size() -> None:
    x, y = digits()
    outcome = judge(KIT.mlp(64, 2, 10, activation="tanh"), (x, np.random.default_rng(0).permutation(y)), nn.CrossEntropyLoss())
    assert not outcome.findings


def test_noisy_labels_are_no_matter_of_size() -> None:
    """Four in ten labels are wrong: no learner gets more than six in ten right, and the model gets those."""
    x, y = digits()
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(y)) < 0.4, rng.integers(0, 10, len(y)), y)
    outcome = judge(KIT.mlp(64, 8, 10, activation="tanh"), (x, noisy), nn.CrossEntropyLoss())
    assert not outcome.findings


def test_slow_rates_are_no_matter_of_size() -> None:
    outcome = judge(KIT.mlp(64, 32, 10), digits(), nn.CrossEntropyLoss(), lr=1e-5)
    assert SMALL in outcome.clear
    assert outcome.history.single(LongTraining).rate > 1e-3


def test_strong_decay_is_no_matter_of_size() -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    subject = Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), optimiser)
    trial = attempt(subject, {SMALL}, {"long_training"}).history.single(LongTraining)
    assert trial.scores[-1] < 0.8
    assert trial.later_scores[-1] > 0.85


def test_outputs_of_an_unknown_loss_are_not_read_as_answers() -> None:
    """A margin of a hundred is a fine answer to ±1, and a poor r²."""
    x, y = cancer()

    def hinge(score: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
        return torch.relu(1 - score * side).mean()

    outcome = judge(KIT.mlp(30, 1), (x, (2 * y - 1).astype(np.float32)[:, None]), hinge)
    assert not outcome.findings
    assert "cannot be read as answers" in outcome.not_examined[SMALL]


def test_an_output_on_another_scale_than_the_target_is_not_read_as_an_answer() -> None:
    x, y = worth()
    raw = np.exp(y)

    def of_logs(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(output, torch.log(target))

    outcome = judge(KIT.mlp(64, 32, 1), (x, raw), of_logs)
    assert not outcome.findings
    assert SMALL in outcome.not_examined


def test_a_frozen_trunk_is_not_called_small() -> None:
    trunk = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2), nn.Tanh()).requires_grad_(False)
    outcome = judge(nn.Sequential(trunk, nn.Linear(2, 10)), digits(), nn.CrossEntropyLoss())
    assert not outcome.findings


def test_wide_models_that_generalise_are_not_accused() -> None:
    train, held_out = split(digits(), 200)
    outcome = judge(KIT.mlp(64, 512, 512, 10), train, nn.CrossEntropyLoss(), lr=1e-3, held_out=held_out)
    assert {SMALL, LARGE} <= set(outcome.clear)
    assert outcome.history.single(LongTraining).scores[-1] > 0.98


def test_without_validation_a_wide_model_is_not_accused() -> None:
    train, _ = split(diabetes(), 150)
    outcome = judge(KIT.mlp(10, 256, 256, 1), train, nn.MSELoss(), lr=3e-3)
    assert outcome.not_examined[LARGE] == "no validation data was given"
    assert SMALL in outcome.clear


def test_a_wide_model_that_knows_patients_by_heart_is_named_with_both_curves() -> None:
    train, held_out = split(diabetes(), 150)
    finding = judge(KIT.mlp(10, 256, 256, 1), train, nn.MSELoss(), lr=3e-3, held_out=held_out).findings[LARGE]
    assert finding.numbers["train_score"] > 0.98
    assert finding.numbers["learner_validation_score"] > finding.numbers["validation_score"] + 0.1
    assert finding.series[0].x == finding.series[1].x


def test_usual_models_pay_for_a_few_steps_only() -> None:
    outcome = judge(KIT.mlp(64, 32, 10), digits(), nn.CrossEntropyLoss())
    assert outcome.history.single(LongTraining).steps[-1] <= 100


def test_a_learner_answers_for_new_samples_what_it_answers_for_held_out_ones() -> None:
    (x, y), (new_x, new_y) = split(digits(), 1000)
    task = task_of([y])
    for found in answers(x.astype(np.float64), task.columns, new_x.astype(np.float64), np.random.default_rng(0)):
        held_out, new = task.errors(found.held_out, y).mean(), task.errors(found.new, new_y).mean()
        assert new == pytest.approx(held_out, abs=0.04), found.learner


def test_a_single_score_is_cut_where_it_serves_best() -> None:
    task = task_of([np.array([0] * 10 + [1] * 10)])
    scores = np.linspace(5, 6, 20)[:, None]
    assert not task.errors(as_answers(task, scores, scores), task.values).any()


def test_equal_errors_are_no_evidence() -> None:
    assert _by_chance(np.zeros(50)) == 1.0
    assert _by_chance(np.array([1.0, -1.0] * 25)) == pytest.approx(0.5)
    assert _by_chance(np.ones(50)) < 1e-6
