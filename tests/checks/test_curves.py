"""What a curve of losses says. The losses are of real trainings; healthy ones of all kinds are never accused."""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler

from sleuth.checks import all_checks
from sleuth.core.engine import Engine, Judgement
from sleuth.core.observation import Call, Ending, Evaluation, Jump, Split, Step
from sleuth.core.recording.jumps import Jumps
from sleuth.core.settings import Configuration
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digits

KIT = TorchKit()
NAMES = ("loss-diverges", "loss-oscillates", "loss-spikes", "learning-rate-decayed-away", "loss-not-decreasing")
Course = list[tuple[float, float]]
Change = Callable[[int, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def rows(samples: int, size: int, shuffle: bool) -> Iterator[torch.Tensor]:
    while True:
        order = torch.randperm(samples) if shuffle else torch.arange(samples)
        yield from order.split(size)


def course(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    steps: int,
    *,
    data: tuple[np.ndarray, np.ndarray] | None = None,
    loss: Callable[..., torch.Tensor] = functional.cross_entropy,
    size: int = 32,
    shuffle: bool = True,
    schedule: lr_scheduler.LRScheduler | None = None,
    change: Change = lambda step, x, y: (x, y),
) -> Course:
    x, y = (torch.as_tensor(a) for a in data or digits())
    found = []
    for step, chosen in zip(range(steps), rows(len(x), size, shuffle), strict=False):
        inputs, target = change(step, x[chosen], y[chosen])
        value = loss(model(inputs), target)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        found.append((value.item(), optimiser.param_groups[0]["lr"]))
        if schedule is not None:
            schedule.step()
    return found


def judge(losses: Course, *names: str, ended: bool = True, validation: list[tuple[int, float]] | None = None) -> Judgement:
    engine = Engine(all_checks(), Configuration(select=names or NAMES))
    engine.emit(Call("backward", 0, None))
    for step, (loss, rate) in enumerate(losses):
        engine.emit(Step(step, loss if np.isfinite(loss) else None, rate))
    for step, value in validation or ():
        engine.emit(Evaluation(step, Split.VALIDATION, {"loss": value}))
    if ended:
        engine.emit(Ending(len(losses)))
    return engine.judge()


def silent(losses: Course) -> bool:
    """At its end, and whenever somebody asks before."""
    moments = [judge(losses), *(judge(losses[:cut], ended=False) for cut in (120, 250, 400, 700) if cut < len(losses))]
    return not any(judgement.findings for judgement in moments)


def adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr)


def sgd(model: nn.Module, lr: float = 0.1, momentum: float = 0.0) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr, momentum=momentum)


@pytest.mark.parametrize("size", [1, 8, 32, 512])
def test_noise_of_small_batches_is_no_trouble(size: int) -> None:
    model = KIT.mlp(64, 32, 10)
    assert silent(course(model, adam(model), 1000, size=size))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("size", [1, 4, 300])
def test_a_model_that_does_not_change_has_noise_and_nothing_else(size: int, shuffle: bool) -> None:
    model = KIT.mlp(10, 32, 1)
    losses = course(model, sgd(model, 0.0), 900, data=diabetes(), loss=functional.mse_loss, size=size, shuffle=shuffle)
    assert not judge(losses, "loss-diverges", "loss-oscillates", "loss-spikes").findings


def test_wrong_labels_make_a_heavy_tail_and_no_spikes() -> None:
    x, y = digits()
    wrong = np.where(np.arange(len(y)) < 20, (y + 1) % 10, y)
    model = KIT.mlp(64, 32, 10)
    assert silent(course(model, adam(model), 2000, data=(x, wrong), size=2))


@pytest.mark.parametrize("rate", [1e-3, 1e-2])
def test_new_tasks_by_design_are_neither_spikes_nor_divergence(rate: float) -> None:
    model = KIT.mlp(64, 32, 10)
    assert silent(course(model, adam(model, rate), 1200, change=lambda step, x, y: (x, (y + step // 300) % 10)))


def test_data_that_become_harder_are_no_divergence() -> None:
    model = KIT.mlp(64, 32, 10)
    harder = lambda step, x, y: (x + 0.3 * (step > 400) * torch.randn_like(x), y)  # noqa: E731
    assert silent(course(model, adam(model), 900, change=harder))


def test_tasks_that_take_turns_do_not_oscillate() -> None:
    model = KIT.mlp(64, 32, 10)
    turn = count()
    either = lambda z, y: (  # noqa: E731
        functional.cross_entropy(z, y) if next(turn) % 2 else 30 * functional.mse_loss(z[:, 0], y / 3)
    )
    assert silent(course(model, adam(model), 800, loss=either))


def test_another_loss_at_every_fiftieth_step_is_no_spike() -> None:
    model = KIT.mlp(64, 32, 10)
    turn = count(1)
    lazy = lambda z, y: (  # noqa: E731
        functional.cross_entropy(z, y) if next(turn) % 50 else 2 * z.square().sum(1).mean()
    )
    assert silent(course(model, adam(model), 1000, loss=lazy))


SCHEDULES: dict[str, Callable[[torch.optim.Optimizer], lr_scheduler.LRScheduler]] = {
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 800),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.3, total_steps=801),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 200),
    "cycles": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.3, 50, cycle_momentum=False),
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, 0.99),
    "linear to zero": lambda o: lr_scheduler.LinearLR(o, 1.0, 0.0, 800),
    "warm-up": lambda o: lr_scheduler.LinearLR(o, 1e-6, 1.0, 300),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_that_are_meant_are_not_accused(name: str) -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = sgd(model, 0.2)
    assert silent(course(model, optimiser, 800, schedule=SCHEDULES[name](optimiser)))


def test_a_plateau_that_a_schedule_waited_for_is_no_rate_that_decayed_away() -> None:
    """Loss levels off first; then the rate comes down a hundred-thousandfold, and the training goes on."""
    x, y = diabetes()
    model = KIT.mlp(10, 1)
    optimiser = sgd(model, 0.03)
    schedule = lr_scheduler.MultiStepLR(optimiser, [300, 310, 320, 330, 340])
    losses = course(model, optimiser, 900, data=(x, y), loss=functional.mse_loss, size=128, schedule=schedule)
    level = losses[200:300]
    assert not judge(level + losses[300:]).findings


@pytest.mark.parametrize("gamma", [0.9, 0.5])
def test_a_rate_that_is_gone_in_the_first_steps_is_named(gamma: float) -> None:
    model = KIT.mlp(64, 32, 10)
    optimiser = adam(model, 1e-2)
    losses = course(model, optimiser, 500, schedule=lr_scheduler.ExponentialLR(optimiser, gamma))
    (finding,) = judge(losses, "learning-rate-decayed-away").findings
    assert finding.numbers["share"] > 0.7


def test_a_loss_that_climbs_far_above_its_start_diverges() -> None:
    model = KIT.mlp(64, 32, 10, activation="tanh")
    (finding,) = judge(course(model, sgd(model, 2.0), 300)).findings
    assert finding.name == "loss-diverges"
    assert finding.first_step < 20


def test_a_large_rate_that_calms_down_is_forgiven() -> None:
    """Ten times the start in the first steps, and below it soon after."""
    model = KIT.mlp(64, 10)
    losses = course(model, sgd(model, 10.0), 600)
    assert max(loss for loss, _ in losses[:20]) > 3 * losses[0][0]
    assert not judge(losses).findings


def test_spikes_are_named_by_their_steps() -> None:
    x, y = (a.copy() for a in diabetes())
    y[[100, 300]] = 40
    model = KIT.mlp(10, 16, 1)
    losses = course(model, adam(model), 900, data=(x, y), loss=functional.l1_loss, size=8)
    (finding,) = judge(losses, "loss-spikes").findings
    values = np.array([loss for loss, _ in losses])
    assert all(values[step] > 3 for step in finding.numbers["at"])


def test_a_long_training_keeps_the_spikes_that_its_thinned_steps_have_lost() -> None:
    x, y = (a.copy() for a in diabetes())
    y[[100]] = 80
    model = KIT.mlp(10, 16, 1)
    losses = course(model, adam(model), 5000, data=(x, y), loss=functional.l1_loss, size=8)
    engine = Engine(all_checks(), Configuration(select=("loss-spikes",)))
    engine.emit(Ending(len(losses)))
    jumps = Jumps()
    for step, (loss, rate) in enumerate(losses):
        engine.emit(Step(step, loss, rate))
        for jump in jumps.found([Step(step, loss, rate)]):
            assert isinstance(jump, Jump)
            engine.emit(jump)
    (finding,) = engine.judge().findings
    assert finding.numbers["spikes"] > 50


def test_few_steps_are_not_examined() -> None:
    model = KIT.mlp(64, 32, 10)
    judgement = judge(course(model, adam(model), 60))
    assert not judgement.findings
    assert judgement.not_examined["loss-diverges"] == "only 60 steps were seen"


VALIDATED = ("overfitting", "validation-too-good")


def validated(epochs: int, *, width: int = 64, drop: float = 0.0, noise: float = 0.0) -> tuple[Course, list[tuple[int, float]]]:
    """Diabetes, 300 patients; the other ones validate after every epoch."""
    x, y = (torch.as_tensor(a) for a in diabetes())
    model = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Dropout(drop), nn.Linear(width, 1))
    optimiser = adam(model, 5e-3)
    losses: Course = []
    checks = []
    change = lambda step, a, b: (a + noise * torch.randn_like(a), b)  # noqa: E731
    for _ in range(epochs):
        model.train()
        data = (x[:300].numpy(), y[:300].numpy())
        losses += course(model, optimiser, 10, data=data, loss=functional.mse_loss, change=change)
        model.eval()
        with torch.no_grad():
            checks.append((len(losses), functional.mse_loss(model(x[300:]), y[300:]).item()))
    return losses, checks


def test_overfitting_names_the_step_to_stop_at() -> None:
    losses, checks = validated(80)
    (finding,) = judge(losses, *VALIDATED, validation=checks).findings
    assert finding.name == "overfitting"
    assert finding.numbers["stop_at"] == min(checks, key=lambda check: check[1])[0]
    assert f"Stop at step {finding.numbers['stop_at']}" in finding.fix


@pytest.mark.parametrize("seed", range(6))
def test_validation_that_only_wavers_is_no_overfitting(seed: int) -> None:
    torch.manual_seed(seed)
    losses, checks = validated(60, width=4)
    assert not judge(losses, *VALIDATED, validation=checks).findings


@pytest.mark.parametrize("disturbance", [{"drop": 0.5}, {"noise": 0.7}])
def test_dropout_and_augmentation_explain_a_training_loss_above_validation(disturbance: dict[str, float]) -> None:
    losses, checks = validated(30, **disturbance)
    assert np.mean([value for _, value in checks[15:]]) < np.mean([loss for loss, _ in losses[150:]])
    assert not judge(losses, *VALIDATED, validation=checks).findings


def test_a_sum_that_is_divided_by_the_wrong_number_is_too_good() -> None:
    losses, checks = validated(30, width=8)
    (finding,) = judge(losses, "validation-too-good", validation=[(step, value / 64) for step, value in checks]).findings
    assert "averaged differently" in finding.summary
