"""Models that are hard to look at: their numbers stay the same, nothing of ours raises into them, and silence is explained."""

from collections.abc import Callable

import pytest

import sleuth
from sleuth.session.watch import Watch

torch = pytest.importorskip("torch")
nn = torch.nn

STEPS = 6


class RaisesOnQuestions(nn.Module):
    """Answers a missing attribute with an error that nobody expects."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)

    def __getattr__(self, name: str) -> object:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise KeyError(name) from None


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 1, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.complex64) @ self.weight).abs()


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(1))


def scripted() -> nn.Module:
    return torch.jit.script(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)))


def nested_deeply() -> nn.Module:
    """Python's limit of recursion is just not reached without a watch."""
    model: nn.Module = nn.Linear(4, 1)
    for _ in range(200):
        model = nn.Sequential(model)
    return model


def train(make: Callable[[], nn.Module], *, watched: bool, steps: int = STEPS) -> tuple[list[float], Watch | None]:
    torch.manual_seed(0)
    model = make()
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = sleuth.watch(model, optimizer, every=1, quiet=True) if watched else None
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watch is not None:
        watch.close()
    return losses, watch


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [RaisesOnQuestions, Complex, lazy, scripted, nested_deeply], ids=lambda make: make.__name__)
def test_odd_models_train_as_if_nobody_watched(make: Callable[[], nn.Module]) -> None:
    plain, _ = train(make, watched=False)
    watched, watch = train(make, watched=True)
    assert watched == plain
    assert watch is not None
    heard = watch.report().steps
    assert heard == STEPS or watch.notes, "neither heard nor said why not"


def shaped() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))


@pytest.mark.filterwarnings("ignore")
def test_lazy_layers_are_examined_like_any_other() -> None:
    reports = [watch.report() for make in (shaped, lazy) if (watch := train(make, watched=True, steps=30)[1]) is not None]
    known, late = reports
    assert late.steps == 30
    assert late.facts["architecture"]["layers"][0]["shapes"] == [[3, 4], [3]]
    assert late.clear == known.clear
    assert list(late.not_examined) == list(known.not_examined)


def test_a_watch_that_cannot_begin_says_so_and_lets_the_training_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model's own `named_parameters` fails whenever it is asked by somebody else than its user."""
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def refuses(*_: object, **__: object) -> object:
        raise RuntimeError("parameters are on strike")

    for name in ("named_parameters", "parameters", "named_modules", "modules"):
        monkeypatch.setattr(model, name, refuses, raising=False)
    with sleuth.watch(model, optimizer) as watch:
        model(torch.randn(8, 4)).sum().backward()
        optimizer.step()
    said = capsys.readouterr().err
    assert "watching could not begin: RuntimeError: parameters are on strike" in said
    assert "nothing found" not in said
    assert watch.report().status == "unknown"
