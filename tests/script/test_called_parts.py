"""A loop may call methods of its model, or a module inside it: what is called is heard, and belongs to the model."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sleuth.core.observation import Modes, Step
from sleuth.core.observation.calls import CallKind
from sleuth.session.script import Session
from tests.script.test_discovery import X, Y, batches, heard, mlp, parameters, stored


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(outputs=8), mlp(inputs=8, outputs=X.shape[1])

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encode(x))


class Wrapped(nn.Module):
    """As people write for trainers: the step is a method, and the model lies inside."""

    def __init__(self) -> None:
        super().__init__()
        self.model = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x).softmax(-1)

    def training_step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.model(x), y)


def step(loss: torch.Tensor, optimiser: torch.optim.Optimizer) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def calls_are_heard(session: Session) -> bool:
    return all(CallKind.FORWARD in s.calls for s in stored(session, Step) if s.calls)


def name(session: Session) -> str:
    """Of the one run that was kept."""
    (told,) = session.told
    assert told.folder is not None
    assert list(told.folder.parent.iterdir()) == [told.folder]
    return told.folder.name


def test_the_module_that_holds_all_that_is_trained_is_the_model_where_it_is_called_itself(tmp_path: Path) -> None:
    def script() -> None:
        model = Wrapped()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(TensorDataset(X[:320], Y[:320]), batch_size=32):
            step(model.training_step(x, y), optimiser)

    session = heard(script, tmp_path)
    assert parameters(session) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert calls_are_heard(session)
    assert stored(session, Modes)
    assert "-Sequential-" in name(session)
    assert session.told[0].report.steps == 10


def test_parts_that_are_called_by_methods_are_heard_as_several(tmp_path: Path) -> None:
    def script() -> None:
        model = Coder()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, _ in batches(8):
            step(functional.mse_loss(model.decoder(model.encode(x)), x), optimiser)

    session = heard(script, tmp_path)
    assert parameters(session)[0] == "encoder.0.weight"
    assert calls_are_heard(session)
    assert "-encoder-decoder-" in name(session)
    assert session.told[0].report.steps == 8


def test_a_part_that_is_called_before_the_model_itself_does_not_take_its_place(tmp_path: Path) -> None:
    def script() -> None:
        model = Coder()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        model.encode(X[:2])
        for x, _ in batches(8):
            step(functional.mse_loss(model(x), x) + model.encode(x).square().mean(), optimiser)

    session = heard(script, tmp_path)
    assert calls_are_heard(session)
    assert "-Coder-" in name(session)
    assert session.told[0].report.steps == 8


def test_a_part_that_only_a_validation_calls_does_not_take_the_models_place(tmp_path: Path) -> None:
    def script() -> None:
        model = Coder()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.no_grad():
            model.encode(X[:2])
        for x, _ in batches(8):
            step(functional.mse_loss(model(x), x), optimiser)

    session = heard(script, tmp_path)
    assert calls_are_heard(session)
    assert "-Coder-" in name(session)


def test_a_forward_that_is_called_by_its_name_does_not_take_the_model_apart(tmp_path: Path) -> None:
    def script() -> None:
        model = Coder()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, _ in batches(8):
            step(functional.mse_loss(model.forward(x), x), optimiser)

    session = heard(script, tmp_path)
    assert "-Coder-" in name(session)
    assert session.told[0].report.steps == 8
