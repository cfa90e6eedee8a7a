"""A model that is compiled is experimented on as it was before: nothing has to be compiled anew for that."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.script.test_discovery import heard, mlp, train


def as_a_whole() -> nn.Module:
    return torch.compile(mlp(), backend="eager")  # type: ignore[return-value]


def a_part() -> nn.Module:
    return nn.Sequential(torch.compile(mlp(outputs=16), backend="eager"), mlp(inputs=16))  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [as_a_whole, a_part])
def test_experiments_are_made_with_the_model_that_was_compiled(made: Callable[[], nn.Module], tmp_path: Path) -> None:
    def script() -> None:
        torch.manual_seed(0)
        model = made()
        train(model, torch.optim.Adam(model.parameters(), 1e-3))

    report = heard(script, tmp_path, budget=20).main().report
    assert "cannot-overfit-one-batch" in report.clear, report.not_examined
    assert not report.findings
