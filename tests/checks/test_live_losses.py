"""Accumulated parts, single classes and logged metrics: what is healthy and looks alike."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Report
from sleuth.testing import Loop
from tests.material import digits
from tests.watched import watched


def batches(size: int = 32) -> DataLoader:
    x, y = digits()
    return DataLoader(TensorDataset(torch.as_tensor(x), torch.as_tensor(y)), size, shuffle=True)


def network(outputs: int = 10) -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, outputs))


def names(report: Report) -> list[str]:
    return [f.name for f in report.findings]


def accumulated(parts: Callable[[nn.Module], None], optimiser=torch.optim.SGD, before=lambda model: None) -> Report:
    """Twenty steps, each fed by `parts(model)`."""
    model = network()
    stepper = optimiser(model.parameters(), 1e-2)

    def run(w: object) -> None:
        for _ in range(20):
            stepper.zero_grad()
            parts(model)
            before(model)
            stepper.step()

    return watched(Loop(model, [stepper], run), select=["accumulation-not-scaled"])


def four(model: nn.Module, divisor: float = 1.0) -> None:
    for _, (x, y) in zip(range(4), batches(), strict=False):
        (functional.cross_entropy(model(x), y) / divisor).backward()


def test_whole_losses_that_add_up_are_found() -> None:
    report = accumulated(four)
    assert names(report) == ["accumulation-not-scaled"]
    assert report.findings[0].numbers["parts"] == 4
    assert ".backward()" in report.findings[0].location.text


def tasks(model: nn.Module) -> None:
    """Two losses of one forward, on one line."""
    x, y = next(iter(batches()))
    scores = model(x)
    for target in (y, 9 - y):
        functional.cross_entropy(scores, target).backward(retain_graph=True)


def two_losses(model: nn.Module) -> None:
    for _ in range(2):
        x, y = next(iter(batches()))
        functional.cross_entropy(model(x), y).backward()
        x, y = next(iter(batches()))
        functional.cross_entropy(model(x), 9 - y).backward()


def judged(model: nn.Module) -> None:
    """A discriminator: real ones, then made ones, each with one answer for all."""
    x, _ = next(iter(batches()))
    for samples, answer in ((x, 1.0), (torch.rand_like(x), 0.0)):
        functional.binary_cross_entropy_with_logits(model(samples)[:, 0], torch.full((len(x),), answer)).backward()


def looked_at_twice(model: nn.Module) -> None:
    """As in a sharpness-aware step whose first gradient is kept."""
    x, y = next(iter(batches()))
    for _ in range(2):
        functional.cross_entropy(model(x), y).backward()


def summed(model: nn.Module) -> None:
    for _, (x, y) in zip(range(4), batches(), strict=False):
        functional.cross_entropy(model(x), y, reduction="sum").div(128).backward()


def by_hand(model: nn.Module) -> None:
    for _, (x, y) in zip(range(4), batches(), strict=False):
        (-model(x).log_softmax(1)[range(len(y)), y]).mean().backward()


@pytest.mark.parametrize("parts", [tasks, two_losses, judged, looked_at_twice, summed, by_hand, lambda model: four(model, 4)])
def test_several_backwards_that_are_no_undivided_parts_are_silent(parts) -> None:
    assert not names(accumulated(parts))


def test_the_size_of_a_gradient_does_not_matter_to_adam() -> None:
    assert "accumulation-not-scaled" in accumulated(four, torch.optim.Adam).clear


def test_a_gradient_that_is_divided_before_the_step_is_not_accused() -> None:
    def divide(model: nn.Module) -> None:
        for p in model.parameters():
            p.grad.data.div_(4)

    report = accumulated(four, before=divide)
    assert "may be divided there" in report.not_examined["accumulation-not-scaled"]


def classifying(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], inputs, targets, steps=300, schedule=None, lr=3e-3):
    """Batches of 32 rows in a random order, one after the other."""
    model = network(int(targets.max()) + 1)
    optimiser = torch.optim.Adam(model.parameters(), lr)
    scheduler = schedule(optimiser) if schedule else None

    def run(w: object) -> None:
        for _ in range(steps):
            rows = torch.randint(0, len(inputs), (32,))
            optimiser.zero_grad()
            loss(model(inputs[rows]), targets[rows]).backward()
            optimiser.step()
            if scheduler:
                scheduler.step()

    return watched(Loop(model, [optimiser], run), select=["predicts-one-class"])


def entropy(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(scores, target)


def real() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = digits()
    return torch.as_tensor(x), torch.as_tensor(y)


def test_inputs_that_are_all_the_same_end_in_one_class() -> None:
    x, y = real()
    report = classifying(entropy, x[:1].repeat(len(x), 1), y.clamp(min=4) - 4)
    assert names(report) == ["predicts-one-class"]
    assert report.findings[0].numbers["named"] > 0.98


def test_a_class_that_most_samples_have_may_be_named_for_all() -> None:
    x, y = real()
    report = classifying(entropy, x[:1].repeat(len(x), 1), (y > 6).long())
    assert "most of the targets" in report.not_examined["predicts-one-class"]


def test_a_rate_that_is_still_warmed_up_has_taught_nothing_yet() -> None:
    x, y = real()

    def warm(optimiser):
        return torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: step / 1e5)

    report = classifying(entropy, x * 0.01, y, schedule=warm)
    assert not names(report)


def test_batches_of_one_class_each_are_not_judged() -> None:
    x, y = real()
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), 0.5)

    def run(w: object) -> None:
        for step in range(200):
            rows = torch.nonzero(y == step // 20 % 10)[:32, 0]
            optimiser.zero_grad()
            functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()

    report = watched(Loop(model, [optimiser], run), select=["predicts-one-class"])
    assert "hold several classes" in report.not_examined["predicts-one-class"]


def test_a_short_training_is_not_judged() -> None:
    x, y = real()
    report = classifying(entropy, x, y, steps=60)
    assert report.not_examined["predicts-one-class"] == "only 60 steps were seen"


def logging(log: Callable[..., None], epochs: int = 6) -> Report:
    """`log(w, scores, targets, losses)` after each epoch, all of it concatenated."""
    torch.manual_seed(0)
    model = network()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)

    def run(w: object) -> None:
        loader = batches(64)
        for _ in range(epochs):
            scores, targets, losses = [], [], []
            for x, y in loader:
                optimiser.zero_grad()
                found = model(x)
                loss = functional.cross_entropy(found, y)
                loss.backward()
                optimiser.step()
                scores.append(found.detach())
                targets.append(y)
                losses.append(loss.item())
            log(w, torch.cat(scores), torch.cat(targets), losses)

    return watched(Loop(model, [optimiser], run), select=["metric-misread"])


def share(scores: torch.Tensor, targets: torch.Tensor) -> float:
    return float((scores.argmax(1) == targets).float().mean())


def test_shares_percent_means_and_sums_of_an_epoch_are_fine() -> None:
    def log(w, scores, targets, losses):
        w.log(accuracy=share(scores, targets), loss=sum(losses) / len(losses))

    assert "metric-misread" in logging(log).clear
    assert "metric-misread" in logging(lambda w, s, t, losses: w.log(acc=100 * share(s, t), loss=sum(losses))).clear
    assert "metric-misread" in logging(lambda w, s, t, losses: w.log(accuracy=share(s[-64:], t[-64:]), loss=losses[-1])).clear


def test_a_mean_since_the_beginning_is_a_choice() -> None:
    seen: list[float] = []

    def log(w, scores, targets, losses):
        seen.append(share(scores, targets))
        w.log(accuracy=sum(seen) / len(seen))

    assert not names(logging(log))


def test_an_argmax_over_one_column_is_found() -> None:
    report = logging(lambda w, s, t, losses: w.log(accuracy=float((s[:, :1].argmax(1) == t).float().mean())))
    assert names(report) == ["metric-misread"]
    assert "class 0" in report.findings[0].summary


def test_an_accuracy_above_a_hundred_is_found() -> None:
    report = logging(lambda w, s, t, losses: w.log(accuracy=float((s.argmax(1) == t).sum())))
    assert names(report) == ["metric-misread"]
    assert report.findings[0].confidence.value == "certain"


@pytest.mark.parametrize("divided", [True, False])
def test_a_sum_of_losses_that_is_never_reset_is_found(divided: bool) -> None:
    total = [0.0]

    def log(w, scores, targets, losses):
        total[0] += sum(losses)
        w.log(loss=total[0] / (len(losses) if divided else 1))

    report = logging(log)
    assert names(report) == ["metric-misread"]
    assert "since the training began" in report.findings[0].summary


def test_what_is_no_accuracy_and_no_loss_is_not_judged() -> None:
    report = logging(lambda w, s, t, losses: w.log(perplexity=900.0, top5_accuracy=0.99))
    assert "none of the logged metrics" in report.not_examined["metric-misread"]


def validating(logged: Callable[[float, list[float]], float]) -> Report:
    """Each epoch logs what `logged` makes of the right share and of those before it."""
    torch.manual_seed(0)
    model = network()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    x, y = real()

    def run(w) -> None:
        before: list[float] = []
        for _ in range(6):
            for start in range(0, 1400, 64):
                optimiser.zero_grad()
                functional.cross_entropy(model(x[start : start + 64]), y[start : start + 64]).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                scores = model(x[1400:])
                functional.cross_entropy(scores, y[1400:])
            model.train()
            w.log(val_accuracy=logged(share(scores, y[1400:]), before))
            before.append(share(scores, y[1400:]))

    return watched(Loop(model, [optimiser], run), select=["metric-misread"])


def test_validation_is_held_against_the_pass_that_was_heard() -> None:
    assert "metric-misread" in validating(lambda now, before: now).clear
    assert "metric-misread" in validating(lambda now, before: 100 * now).clear
    assert names(validating(lambda now, before: now + sum(before))) == ["metric-misread"]
    assert names(validating(lambda now, before: 0.1)) == ["metric-misread"]
