"""Small trainings that come to NaN or Inf, each in its own way. The line that is to blame ends with `# here`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]
# A sample that breaks a training lies here: with batches of eight at step 5, and the loss is heard at steps 0, 1, 2, 4, 8, …
SICK = 45
SAMPLES = 64


def squared(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(model(x).squeeze(1), y)


class Net(nn.Module):
    """A layer of interest between two others."""

    def __init__(self, middle: nn.Module | None = None, first: nn.Module | None = None) -> None:
        super().__init__()
        self.first = first or nn.Identity()
        self.body = nn.ModuleDict({"middle": middle or nn.Identity()})
        self.last = nn.LazyLinear(1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body["middle"](self.first(x)))


class Logs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.log(x)  # here


class Shares(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x.sum(1, keepdim=True)  # here


class Roots(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sqrt(x.abs())  # here


class Powers(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x**0.3  # here


class Angles(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.acos(torch.tanh(x))  # here


class Directions(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x.norm(dim=1, keepdim=True)  # here


class GuardedDirections(nn.Module):
    """No NaN leaves it, and yet the backward meets one."""

    def forward(self, x: Tensor) -> Tensor:
        length = x.norm(dim=1, keepdim=True)
        unit = x / length  # here
        return torch.where(length > 0, unit, torch.zeros_like(x))


class GuardedRoots(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x != 0, torch.sqrt(x.abs()), 0.0)  # here


class Standardised(nn.Module):
    """Batch-norm written by hand."""

    def forward(self, x: Tensor) -> Tensor:
        spread = x.std(0)  # here
        return (x - x.mean(0)) / (spread + 1e-5)


class Energies(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x.half() ** 2).float()  # here


class Pooled(nn.Module):
    """Attention over four places, of which those with a zero are empty."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.score(x.unsqueeze(2)).squeeze(2).masked_fill(x == 0, -torch.inf)
        return torch.softmax(scores, 1) * x  # here


def poisson(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    rate = torch.relu(model(x)).squeeze(1)
    fit = y * torch.log(rate)  # here
    return (rate - fit).mean()


def counts(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    score = model(x).squeeze(1)
    rate = torch.exp(score)  # here
    return (rate - y * score).mean()


def distance(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """A target that the model already meets."""
    z = model(x).expand(-1, 3)
    goal = torch.where((x == 0).all(1, keepdim=True), z.detach(), y.unsqueeze(1))
    return torch.sqrt(((z - goal) ** 2).sum(1)).mean()  # here


def forbidden(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    allowed = (x[:, :1] > 0.01).float()
    cost = (model(x) - y.unsqueeze(1)).pow(2).masked_fill(allowed == 0, torch.inf)
    return (cost * allowed).mean()  # here


def survival(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    hazard = torch.sigmoid(model(x)).expand(-1, 400) * x[:, :1]
    alive = torch.cumprod(1 - hazard, 1)  # here
    return -torch.log(alive[:, -1]).mean() * 1e-3


@dataclass(frozen=True)
class Breaking:
    model: Callable[[], nn.Module]
    loss: Loss
    data: Callable[[Tensor], Any]  # changes the inputs in place
    operation: str
    direction: str
    layer: str | None
    fix: str
    source: Any  # the function or class with the line to blame
    sample: bool = True
    size: int = SAMPLES

    def train(self, steps: int | None = None) -> tuple[nn.Module, torch.optim.Optimizer, Iterator[None]]:
        torch.manual_seed(0)
        x = torch.rand(self.size, 4) + 0.1
        self.data(x)
        y = x[:, 0].clone().abs()
        model = self.model()
        model(x[:2])
        optimiser = torch.optim.SGD(model.parameters(), 1e-3)
        loader = DataLoader(TensorDataset(x, y), 8)

        def loop() -> Iterator[None]:
            for a, b in loader:
                optimiser.zero_grad()
                loss = self.loss(model, a, b)
                loss.backward()
                optimiser.step()
                yield

        return model, optimiser, loop()


def nothing(x: Tensor) -> None:
    """The data are sound."""


def sick(value: float) -> Callable[[Tensor], None]:
    def spoil(x: Tensor) -> None:
        x[SICK] = value

    return spoil


def cancelling(x: Tensor) -> None:
    x[SICK] = torch.tensor([0.5, -0.5, 0.25, -0.25])


def biased(bias: float | None) -> nn.Module:
    net = Net()
    net.last = nn.Linear(4, 1, bias=bias is not None)
    nn.init.uniform_(net.last.weight, 0.1, 0.2)
    if bias is not None:
        nn.init.constant_(net.last.bias, bias)
    return net


INSIDE, OUTSIDE = "body.middle", None

CASES = {
    "log(0)": Breaking(
        lambda: biased(None), poisson, sick(0.0), "log", "forward", OUTSIDE, "torch.log(x.clamp(min=1e-6))", poisson
    ),
    "log of a negative": Breaking(
        lambda: Net(Logs()), squared, sick(-2.0), "log", "forward", INSIDE, "positive values only", Logs
    ),
    "division by zero": Breaking(lambda: Net(Shares()), squared, cancelling, "div", "forward", INSIDE, "a / b", Shares),
    "0 * inf": Breaking(
        lambda: biased(0.1), forbidden, sick(0.0), "mul", "forward", OUTSIDE, "Choose instead of multiplying", forbidden
    ),
    "sqrt at 0": Breaking(
        lambda: Net(Roots(), nn.Linear(4, 4, bias=False)), squared, sick(0.0), "sqrt", "backward", INSIDE,
        "torch.sqrt(x + 1e-6)", Roots,
    ),
    "norm by hand": Breaking(
        lambda: biased(0.1), distance, sick(0.0), "sqrt", "backward", OUTSIDE, "torch.linalg.norm(x)", distance
    ),
    "x / x.norm()": Breaking(
        lambda: Net(Directions()), squared, sick(0.0), "div", "forward", INSIDE, "F.normalize", Directions
    ),
    "x / x.norm() behind where": Breaking(
        lambda: Net(GuardedDirections(), nn.Linear(4, 4, bias=False)), squared, sick(0.0), "div", "backward", INSIDE,
        "harmless before choosing", GuardedDirections,
    ),
    "where with a bad branch": Breaking(
        lambda: Net(GuardedRoots(), nn.Linear(4, 4, bias=False)), squared, sick(0.0), "sqrt", "backward", INSIDE,
        "harmless before choosing", GuardedRoots,
    ),
    "softmax of a masked row": Breaking(
        lambda: Net(Pooled()), squared, sick(0.0), "softmax", "forward", INSIDE, "at least one entry of each row", Pooled
    ),
    "exp overflow": Breaking(
        lambda: biased(0.1), counts, sick(500.0), "exp", "forward", OUTSIDE, "torch.exp(x.clamp(max=80))", counts
    ),
    "float16 overflow": Breaking(
        lambda: Net(Energies()), squared, sick(300.0), "pow", "forward", INSIDE, "another type than float16", Energies
    ),
    "pow with a negative base": Breaking(
        lambda: Net(Powers()), squared, sick(-1.0), "pow", "forward", INSIDE, "x.clamp(min=1e-6) ** p", Powers
    ),
    "acos(1)": Breaking(
        lambda: Net(Angles(), nn.Linear(4, 4)), squared, sick(100.0), "acos", "backward", INSIDE, "x.clamp(-1 + 1e-6, 1 - 1e-6)",
        Angles,
    ),
    "std of one sample": Breaking(
        lambda: Net(Standardised(), nn.Linear(4, 4)), squared, nothing, "std", "forward", INSIDE, "unbiased=False", Standardised,
        sample=False, size=33,
    ),
    "cumprod underflow": Breaking(
        lambda: biased(0.1), survival, nothing, "cumprod", "forward", OUTSIDE, "torch.cumsum(torch.log(x)", survival, sample=False
    ),
}  # fmt: skip
