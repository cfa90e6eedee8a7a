"""What we wrap takes its arguments as without us, by name too, and stays what the framework expects."""

from pathlib import Path

import pytest

import sleuth
from sleuth.session.script import Options, Session

torch = pytest.importorskip("torch")
nn = torch.nn


def gradient_penalty(watched: bool) -> list[float]:
    """As in WGAN-GP: a gradient is asked for by name, and is part of the loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    run = sleuth.watch(model, optimiser) if watched else None
    losses = []
    for _ in range(5):
        x = torch.randn(16, 4, requires_grad=True)
        score = model(x)
        slope = torch.autograd.grad(outputs=score, inputs=x, grad_outputs=torch.ones_like(score), create_graph=True)[0]
        loss = (slope.norm(2, dim=1) - 1).square().mean()
        optimiser.zero_grad()
        torch.autograd.backward(tensors=loss)
        optimiser.step()
        losses.append(loss.item())
    if run is not None:
        run.close()
    return losses


def test_a_gradient_is_asked_for_by_name() -> None:
    assert gradient_penalty(watched=True) == gradient_penalty(watched=False)


def test_a_keras_model_that_is_loaded_is_compiled(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    session = Session("train.py", Options(directory=tmp_path / "runs", budget=0))
    session.attend("keras")
    x, y = torch.randn(64, 4).numpy(), torch.randint(3, (64,)).numpy()
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.compiled
    assert loaded.evaluate(x, y, verbose=0) == pytest.approx(model.evaluate(x, y, verbose=0))
    session.end(None)
