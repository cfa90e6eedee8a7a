"""train-eval-disagree and gradient-wrong: what differs by design, and what does not."""

import pytest
import torch
from torch import nn

from sleuth.core.stage import Severity
from sleuth.core.trial import ModeAgreement
from tests.checks.looking import look, training
from tests.checks.test_model_dependence import Made
from tests.material import digit_images, digits


def test_batch_norm_that_never_follows_the_data_is_found() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32, momentum=0.0), nn.ReLU(), nn.Linear(32, 10))
    found = look(training(model), "train-eval-disagree").one()
    assert found.severity is Severity.WARNING


def test_a_dropout_by_hand_that_forgets_to_rescale_is_found() -> None:
    class Forgetful(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (torch.rand_like(x) < 0.1) if self.training else x

    model = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), Forgetful(), nn.Linear(256, 256), nn.ReLU(), Forgetful(), nn.Linear(256, 10)
    )
    nn.init.kaiming_normal_(model[0].weight)
    nn.init.kaiming_normal_(model[3].weight)
    assert look(training(model), "train-eval-disagree").findings


class DropPath(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x + self.body(x)
        keep = (torch.rand(len(x), 1) < 0.7).float() / 0.7
        return x + keep * self.body(x)


class Softmaxed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.training else x.softmax(1)


def convolutions(momentum: float = 0.1, blocks: int = 3) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(blocks):
        layers += [nn.Conv2d(1 if i == 0 else 16, 16, 3, padding=1), nn.BatchNorm2d(16, momentum=momentum), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def dropped(p: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Dropout(p), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(p), nn.Linear(128, 10)
    )


def deep_dropped() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), *[m for _ in range(8) for m in (nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 32))])


def normed_mlp(momentum: float | None) -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU(), nn.Linear(32, 10))


AGREEING = {
    "dropout": lambda: training(dropped(0.2)),
    "strong dropout": lambda: training(dropped(0.5)),
    "deep dropout": lambda: training(nn.Sequential(deep_dropped(), nn.Linear(32, 10))),
    "drop path": lambda: training(nn.Sequential(nn.Linear(64, 32), DropPath(32), DropPath(32), nn.Linear(32, 10))),
    "convolutions": lambda: training(convolutions(), data=digit_images()),
    "deep convolutions": lambda: training(convolutions(blocks=8), data=digit_images()),
    "norm": lambda: training(normed_mlp(0.1)),
    "norm with cumulative average": lambda: training(normed_mlp(None)),
    "norm with a high momentum": lambda: training(normed_mlp(0.9)),
}


@pytest.mark.parametrize("name", AGREEING)
def test_noise_and_fresh_running_statistics_are_no_disagreement(name: str) -> None:
    seen = look(AGREEING[name](), "train-eval-disagree")
    assert not seen.findings, seen.findings[0].summary
    assert not seen.not_examined
    # Far enough from the limit that another seed does not cross it.
    assert seen.history.single(ModeAgreement).difference < 1.1


def test_what_differs_by_design_is_not_examined() -> None:
    softmaxed = training(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10), Softmaxed()))
    tuples = training(
        Made(lambda m, x: (m.head(x), m.extra(x)) if m.training else m.head(x), head=nn.Linear(64, 10), extra=nn.Linear(64, 10)),
        lambda out, y: nn.functional.cross_entropy(out[0] if isinstance(out, tuple) else out, y),
    )
    slow = training(normed_mlp(0.001))
    for subject, word in ((softmaxed, "softmax"), (tuples, "something else"), (slow, "momentum")):
        seen = look(subject, "train-eval-disagree")
        assert not seen.findings
        assert word in seen.not_examined["train-eval-disagree"]


def test_running_statistics_that_outlast_every_training_are_found_with_their_pace() -> None:
    found = look(training(normed_mlp(1e-4)), "train-eval-disagree").one()
    assert "178 epochs" in found.summary


def test_slow_statistics_that_know_the_data_already_are_fine() -> None:
    model = normed_mlp(0.1)
    x = torch.as_tensor(digit_images()[0]).reshape(-1, 64)
    for part in x.split(32):
        model(part)
    model[1].momentum = 1e-4
    seen = look(training(model), "train-eval-disagree")
    assert not seen.findings
    assert not seen.not_examined


def by_hand(forward, backward, name: str = "Cubed") -> nn.Module:
    function = type(name, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    return Made(lambda m, x: m.head(function.apply(m.body(x))), body=nn.Linear(64, 32), head=nn.Linear(32, 10))


def cube(ctx, x: torch.Tensor) -> torch.Tensor:
    ctx.save_for_backward(x)
    return x**3


def right(ctx, g: torch.Tensor) -> torch.Tensor:
    return 3 * ctx.saved_tensors[0] ** 2 * g


WRONG = {
    "missing factor": lambda ctx, g: ctx.saved_tensors[0] ** 2 * g,
    "wrong sign": lambda ctx, g: -right(ctx, g),
    "missing factor of the input": lambda ctx, g: 3 * ctx.saved_tensors[0] * g,
    "ten percent": lambda ctx, g: 1.1 * right(ctx, g),
    "zero": lambda ctx, g: torch.zeros_like(g),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_backward_is_found(name: str) -> None:
    found = look(training(by_hand(cube, WRONG[name])), "gradient-wrong").one()
    assert found.where is not None
    assert found.where.startswith("body")
    assert "Cubed" in found.summary
    if name == "wrong sign":
        assert "opposite sign" in found.summary
    if name == "missing factor":
        assert "always 0.333 times" in found.summary


class SquaredError(torch.autograd.Function):
    @staticmethod
    def forward(ctx, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(out, y)
        return (out - y).square().mean()

    @staticmethod
    def backward(ctx, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        out, y = ctx.saved_tensors
        return 2 * g * (out - y) / out.numel(), None


class Climbing(SquaredError):
    @staticmethod
    def backward(ctx, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        return -SquaredError.backward(ctx, g)[0], None


def test_a_loss_with_a_backward_by_hand_is_judged_by_its_backward() -> None:
    x, _ = digits()
    for loss, wrong in ((Climbing.apply, True), (SquaredError.apply, False)):
        subject = training(nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 64)), loss, (x, x))
        seen = look(subject, "gradient-wrong")
        assert not seen.not_examined
        assert bool(seen.findings) is wrong
    assert "Climbing" in look(training(nn.Linear(64, 64), Climbing.apply, (x, x)), "gradient-wrong").one().summary
    assert "apply" not in vars(torch.autograd.function._SingleLevelFunction)


def straight(ctx, x: torch.Tensor) -> torch.Tensor:
    return x.round()


HONEST = {
    "right backward": lambda: by_hand(cube, right),
    "rectifiers and pools": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
    ),
    "leaky and absolute": lambda: Made(
        lambda m, x: m.head(nn.functional.leaky_relu(m.body(x)).abs()), body=nn.Linear(64, 32), head=nn.Linear(32, 10)
    ),
    "batch norm": lambda: nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10)),
    "zero biases on blank pixels": lambda: zero_bias(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))),
    "spectral norm": lambda: nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Linear(64, 32)), nn.ReLU(), nn.Linear(32, 10)
    ),
}


def zero_bias(model: nn.Sequential) -> nn.Sequential:
    nn.init.zeros_(model[0].bias)
    return model


@pytest.mark.parametrize("name", HONEST)
def test_honest_gradients_are_clear(name: str) -> None:
    seen = look(training(HONEST[name]()), "gradient-wrong")
    assert not seen.findings, seen.findings[0].summary
    assert not seen.not_examined


DELIBERATE = {
    "straight through": lambda: by_hand(straight, lambda ctx, g: g, "Rounded"),
    "reversal": lambda: by_hand(lambda ctx, x: x.clone(), lambda ctx, g: -g, "GradReverse"),
    "stop gradient": lambda: Made(
        lambda m, x: m.head(torch.relu(m.body(x)) * m.body(x).detach().sigmoid()), body=nn.Linear(64, 32), head=nn.Linear(32, 10)
    ),
    "unnamed straight through": lambda: by_hand(straight, lambda ctx, g: g, "Codes"),
}


@pytest.mark.parametrize("name", DELIBERATE)
def test_gradients_that_differ_on_purpose_are_not_accused(name: str) -> None:
    assert not look(training(DELIBERATE[name]()), "gradient-wrong").findings
