"""Settings of an optimiser that are swapped, and lines that were heard beside what is judged."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from sleuth import Subject
from sleuth.adapters.common.loss_values import array_facts
from sleuth.adapters.torch.bench import open_bench
from sleuth.checks import all_checks
from sleuth.core.engine import Engine, Judgement
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Layer, LossCall, Observation, Settings
from sleuth.core.settings import Configuration
from sleuth.core.subject import take_apart
from sleuth.core.trial import Flow, Operation


def judged(name: str, *seen: Observation) -> Judgement:
    engine = Engine(all_checks(), Configuration(select=(name,)))
    for observation in seen:
        engine.emit(observation)
    return engine.judge()


@pytest.mark.parametrize(
    ("optimiser", "betas", "odd"),
    [
        ("Adam", (0.999, 0.9), True),
        ("AdamW", (0.99, 0.9), True),
        ("Adam", (0.9, 0.999), False),
        ("Adam", (0.5, 0.9), False),
        ("Adam", (0.9, 0.9), False),
        ("Adam", (0.0, 0.9), False),
        ("AdamW", (0.95, 0.95), False),
        ("Lion", (0.99, 0.9), False),
    ],
)
def test_betas_that_break_the_bound_of_adams_authors_are_swapped(optimiser: str, betas: tuple[float, float], odd: bool) -> None:
    settings = Settings(framework="torch", loss=None, optimiser=optimiser, lr=1e-3, optimiser_options={"betas": betas})
    found = judged("optimiser-setting-odd", settings).findings
    assert bool(found) is odd


def test_strong_dropout_has_the_line_that_makes_it() -> None:
    made, called = Location("net.py", 3, "drop"), Location("net.py", 9, "call")
    layer = Layer("drop", "Dropout", "dropout", {"p": 0.9}, made)
    operations = (
        Operation("input", "input", (), (8, 4)),
        Operation("linear", "linear", (0,), (8, 4)),
        Operation("dropout", "dropout", (1,), (8, 4), layer="drop", settings={"p": 0.9}, location=called),
        Operation("linear", "linear", (2,), (8, 2)),
    )
    (finding,) = judged("dropout-too-strong", Architecture((layer,), ()), Flow(operations, (3,))).findings
    assert finding.location == made


def test_a_softmax_of_one_unit_is_told_though_the_weights_break_afterwards() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(6, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.last(x), dim=-1)

    x, y = torch.rand(16, 6), torch.randint(0, 2, (16, 1)).float()
    with open_bench(Subject(Net(), None, nn.BCELoss())) as bench:
        (call,) = [o for o in bench.observe(take_apart((x, y)), 0) if isinstance(o, LossCall)]
    broken = array_facts("output", np.full((16, 1), np.nan, np.float32)).statistics
    output = call.argument("output")
    assert output is not None
    later = replace(output, facts=replace(output.facts, statistics=broken))
    after = replace(call, arguments=tuple(later if a is output else a for a in call.arguments))
    assert [f.name for f in judged("single-unit-softmax", call, after).findings] == ["single-unit-softmax"]
