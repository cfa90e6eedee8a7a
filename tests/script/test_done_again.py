"""What an experiment after the end cannot do, but the training did, is nobody's mistake."""

from typing import Any

import pytest
import torch
from torch import nn

from sleuth.adapters.torch.adapter import TorchAdapter
from sleuth.core.contract.kept import Kept, Passed
from sleuth.core.observation import Failure, Observation, Step
from sleuth.core.subject import Parts, Subject
from sleuth.session.aftermath import Aftermath


def refuses(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    raise ValueError("only the loop knows how")


@pytest.mark.parametrize("stepped", [True, False])
def test_a_failure_is_told_only_where_no_step_was_taken(stepped: bool) -> None:
    model = nn.Linear(4, 3)
    batches = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(4)]
    subject = Subject(model, None, refuses, torch.optim.SGD(model.parameters(), lr=0.1))
    passed = [Passed(step, Parts(x, y, (x, y))) for step, (x, y) in enumerate(batches)]
    seen: list[Observation] = []

    def has(what: Any) -> bool:
        return stepped and what is Step

    aftermath = Aftermath(TorchAdapter(), Kept(subject, passed, at_start=True), 20.0, has)
    aftermath.examine(seen.append, lambda _: None)
    assert any(isinstance(o, Failure) for o in seen) is not stepped
    assert any("could not be done again" in note for note in aftermath.notes) is stepped
