"""Two recorded runs: where they part, from Python and from the command line."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

import sleuth
from sleuth.cli import main
from tests.compare.models import X, Y, mlp

STEPS = 4

MODELS = """
import numpy as np
from torch import nn, optim

def first(epsilon=1e-5):
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16, eps=epsilon), nn.ReLU(), nn.Linear(16, 4))
    train = (np.ones((4, 8), np.float32) * np.arange(8), np.arange(4))
    return {"model": model, "train": train, "loss": nn.CrossEntropyLoss(), "optimizer": optim.Adam(model.parameters())}

def second():
    return first(1e-2)
"""


def recorded(folder: Path, change: int | None = None) -> str:
    """The same training again; at one step the rate is another."""
    torch.manual_seed(0)
    model, criterion = mlp(), nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    with sleuth.watch(model, optimiser, every=1, directory=folder, quiet=True):
        for step in range(STEPS):
            optimiser.param_groups[0]["lr"] = 0.2 if step == change else 0.1
            optimiser.zero_grad()
            criterion(model(torch.as_tensor(X)), torch.as_tensor(Y)).backward()
            optimiser.step()
    (found,) = folder.iterdir()
    return str(found)


def test_runs_part_at_the_step_that_was_changed(tmp_path: Path) -> None:
    one, two, other = (recorded(tmp_path / name, change) for name, change in (("a", None), ("b", None), ("c", 2)))
    assert sleuth.compare(one, two).status == "same"
    found = sleuth.compare(one, other)
    assert (found.status, found.step) == ("differs", 2)
    assert found.tensors["gradient"].step == 3
    answer = CliRunner().invoke(main, ["compare", one, other, "--json", str(tmp_path / "out.json"), "--fail-on", "error"])
    assert answer.exit_code == 1, answer.output
    assert "They part at step 2" in answer.output
    assert json.loads((tmp_path / "out.json").read_text())["step"] == 2


def test_models_of_two_factories_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "compared_models.py"
    file.write_text(MODELS)
    answer = CliRunner().invoke(main, ["compare", f"{file}:first", f"{file}:second", "--fail-on", "error"])
    assert answer.exit_code == 1, answer.output
    assert "epsilon 0.01" in answer.output
    again = CliRunner().invoke(main, ["compare", f"{file}:first", f"{file}:first", "--fail-on", "error", "--json", "-"])
    assert again.exit_code == 0
    assert json.loads(again.stdout)["status"] == "same"


@pytest.mark.parametrize("targets", [["a.py:f"], ["nowhere.py:f", "a.py:f"]])
def test_what_cannot_be_compared_is_said(targets: list[str]) -> None:
    answer = CliRunner().invoke(main, ["compare", *targets])
    assert answer.exit_code == 2
    assert answer.output.startswith("sleuth: ")
