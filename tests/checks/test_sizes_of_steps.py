"""How far steps go against the weights they change, where the loss alone would not tell."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn, optim
from torch.nn import functional

from sleuth import Report
from tests.checks.test_tensors_over_steps import adam, mlp, pretrained, train

# Steps that are too long for what is left.


class OfOneLength(optim.SGD):
    """Every gradient is brought to length one, the small ones too."""

    def step(self, closure: Callable[[], Tensor] | None = None) -> None:
        for p in (p for group in self.param_groups for p in group["params"]):
            p.grad.div_(p.grad.norm() + 1e-12)
        super().step(closure)


@pytest.mark.parametrize(("rate", "named"), [(1.0, True), (0.1, False)])
def test_steps_that_stay_long_hold_a_loss_up_that_fell_at_first(rate: float, named: bool) -> None:
    model = mlp(64, 32, 10, activation=nn.Tanh)
    optimiser = OfOneLength(model.parameters(), lr=rate, weight_decay=0.03)
    report = train(model, optimiser, ["update-too-large"], steps=400)
    assert bool(report.findings) == named, report.to_text()
    assert not named or "falls no further" in report.findings[0].summary


def test_a_matrix_that_is_another_one_after_each_step_is_named_though_the_others_learn() -> None:
    model = mlp(64, 64, 10)
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 5.0}]
    optimiser = optim.Adam(groups, lr=1e-3)

    def shrink(step: int) -> None:
        with torch.no_grad():
            model[2].weight.mul_(0.1 / model[2].weight.square().mean().sqrt())

    report = train(model, optimiser, ["update-too-large"], steps=240, between=shrink)
    assert report.culprits[0].finding.where == "2.weight"


# Steps that are too short, of a part of the model.


def groups(model: nn.Sequential, rate: float = 1e-2) -> list[dict]:
    return [{"params": model[0].parameters(), "lr": 1e-8}, {"params": model[2:].parameters(), "lr": rate}]


@pytest.mark.parametrize(("kind", "rate"), [(optim.Adam, 1e-2), (optim.SGD, 0.3)])
def test_a_fresh_part_with_a_rate_of_next_to_nothing_is_named(kind: type[optim.Optimizer], rate: float) -> None:
    model = mlp(64, 64, 32, 10)
    report = train(model, kind(groups(model, rate), lr=rate), ["update-too-small"])
    assert report.culprits[0].finding.where == "0.weight"
    assert "group" in report.culprits[0].finding.fix


def test_a_part_that_was_trained_before_may_be_spared() -> None:
    model = nn.Sequential(*pretrained()[:2], nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
    assert not train(model, optim.Adam(groups(model), lr=1e-2), ["update-too-small"]).findings


class Faint(nn.Module):
    """A branch that has next to no say, and so next to no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.main, self.branch = nn.Linear(64, 10), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.main(x) + 1e-6 * self.branch(x)


def test_a_part_with_a_faint_gradient_has_no_rate_to_blame() -> None:
    model = Faint()
    assert "update-too-small" in train(model, optim.SGD(model.parameters(), 0.5), ["update-too-small"]).clear


# Growth that a loss goes on rewarding.


def critic(bound: Callable[[Tensor], Tensor]) -> Report:
    model = mlp(64, 32, 1)

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(int(y.sum())))
        return bound(model(noise)).mean() - bound(model(x)).mean()

    return train(model, adam(model, 3e-3), ["weights-grow"], loss, steps=320)


def test_a_score_without_a_bound_lets_weights_grow() -> None:
    assert critic(lambda score: score).culprits[0].finding.name == "weights-grow"


@pytest.mark.parametrize("bound", [1, 30])
def test_a_score_with_a_bound_does_not(bound: int) -> None:
    assert "weights-grow" in critic(lambda score: bound * torch.tanh(score / bound)).clear


def test_a_likelihood_below_zero_has_its_floor() -> None:
    model = mlp(64, 32, 128)

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        mean, log_variance = model(x).chunk(2, dim=1)
        return functional.gaussian_nll_loss(mean, x, log_variance.exp(), eps=1e-4)

    report = train(model, adam(model, 3e-3), ["weights-grow"], loss, steps=320)
    assert not report.findings, report.to_text()
