"""The way through a model, and where it ends."""

import json

import torch
from torch import nn

import sleuth
from tests.instruments.models import Language, Residual, Tagger


def test_every_call_has_its_shapes_and_dtypes() -> None:
    result = sleuth.trace(Residual(2), (2, 1, 8, 8))
    assert result.ok
    assert not result.unresolved
    relus = [s for s in result.stops if s.path == "body.0.relu"]
    assert len(relus) == 2
    assert relus[0].outputs[0].shape == (2, 16, 8, 8)
    assert relus[0].outputs[0].dtype == "float32"


def test_a_failure_names_the_layer_what_it_takes_what_it_gets_and_the_cure() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(100, 10))
    failure = sleuth.trace(model, (2, 1, 8, 8)).failure
    assert failure is not None
    assert failure.layer == "2"
    assert failure.expected == "100 features"
    assert "144 features" in failure.got
    assert "Linear(144, 10)" in failure.advice


def test_a_type_error_is_told_from_a_shape_error() -> None:
    failure = sleuth.trace(Language(1), (2, 6)).failure
    assert failure is not None
    assert (failure.kind, failure.layer) == ("dtype", "words")
    assert "long()" in failure.advice


def test_a_norm_on_a_batch_of_one_fails_only_while_training() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    assert sleuth.trace(model, (1, 3)).failure.kind == "batch-of-one"
    assert sleuth.trace(model.eval(), (1, 3)).ok


def test_what_has_no_shape_is_pointed_out() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused, self.lazy = nn.Linear(3, 3), nn.Linear(3, 3), nn.LazyLinear(2)
            self.silent = Silent()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.silent(x)
            return self.used(x)

    class Silent(nn.Module):
        def forward(self, x: torch.Tensor) -> str:
            return "done"

    told = sleuth.trace(Odd(), (2, 3)).unresolved
    assert told == (
        "silent returns a str, which holds no array",
        "unused was not called",
        "lazy is lazy and was not reached: its parameters have no shape",
    )


def test_tuples_and_shared_modules_are_followed() -> None:
    stops = {s.path: s for s in sleuth.trace(Tagger(), (2, 4, 6)).stops}
    assert [d.name for d in stops["memory"].outputs] == ["0", "1.0", "1.1"]
    assert "again" in stops


def test_a_trace_is_drawn_and_written_down() -> None:
    result = sleuth.trace(nn.Sequential(nn.Linear(4, 5), nn.Linear(6, 7)), (2, 4))
    assert json.loads(json.dumps(result.to_dict()))["ok"] is False
    assert "takes:  6 features" in str(result)
    assert result.plot().axes
