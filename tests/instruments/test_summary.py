"""Shapes, parameters and FLOPs of models of every shape."""

import json

import pytest
import torch
import torchinfo
from torch import nn

import sleuth
from tests.instruments.models import Language, Residual, Tagger

SMALL = {
    "residual": (Residual, torch.zeros(2, 1, 8, 8)),
    "lstm": (lambda: nn.LSTM(6, 5, num_layers=2, batch_first=True), torch.zeros(2, 4, 6)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.zeros(2, 4, 16)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), torch.zeros(1, 3, 5, 5)),
}


@pytest.mark.parametrize("name", SMALL)
def test_totals_are_those_of_torchinfo(name: str) -> None:
    build, x = SMALL[name]
    model = build()
    ours, theirs = sleuth.summary(model, x), torchinfo.summary(model, input_data=x, verbose=0)
    assert (ours.parameters, ours.trainable) == (theirs.total_params, theirs.trainable_params)
    assert ours.row("").parameters == sum(p.numel() for p in model.parameters())


def test_shapes_and_flops_are_those_of_the_layers() -> None:
    result = sleuth.summary(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 5)), (2, 3, 8, 8))
    conv, linear = result.row("0"), result.row("2")
    assert (conv.inputs[0].shape, conv.outputs[0].shape, conv.kernel) == ((2, 3, 8, 8), (2, 4, 6, 6), (3, 3))
    assert conv.flops == 2 * (2 * 4 * 6 * 6) * (3 * 3 * 3)
    assert linear.flops == 2 * 2 * 144 * 5
    assert result.flops == conv.flops + linear.flops


def test_what_is_shared_counts_once_and_is_named() -> None:
    tied = sleuth.summary(Language(2), {"ids": (2, 6)}, dtype="int64")
    assert tied.parameters == sum(p.numel() for p in Language(2).parameters())
    assert tied.row("head").note == "weight is words.weight"
    twice = sleuth.summary(Tagger(), (2, 4, 6))
    assert twice.row("again").note == "same as first"
    assert (twice.row("first").calls, twice.row("again").calls) == (1, 1)
    assert twice.row("first").parameters == 42
    assert twice.row("again").parameters == 0


def test_an_lstm_gives_three_outputs_and_its_flops_are_counted() -> None:
    row = sleuth.summary(Tagger(), (2, 4, 6)).row("memory")
    assert [door.shape for door in row.outputs] == [(2, 4, 5), (1, 2, 5), (1, 2, 5)]
    assert row.flops == 2 * (2 * 4) * (6 + 5) * 4 * 5


def test_times_add_up() -> None:
    result = sleuth.summary(Residual(), (4, 1, 16, 16), time=True)
    assert 0.5 < sum(result.share_of_time(result.row(path)) for path in ("stem", "body", "head")) <= 1.0
    blocks = [r for r in result.rows if r.kind == "Block"]
    assert sum(r.seconds for r in blocks) <= result.row("body").seconds < 1.5 * sum(r.seconds for r in blocks)


def test_without_inputs_the_parameters_are_told() -> None:
    result = sleuth.summary(Residual())
    assert result.flops is None
    assert "kernel" in str(result)
    assert "output" not in str(result).splitlines()[0]


def test_a_frozen_part_and_one_that_is_not_called_are_told() -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    model.forward = lambda x: model["a"](x)
    model["a"].requires_grad_(False)
    result = sleuth.summary(model, (2, 3))
    assert (result.parameters, result.trainable, result.frozen) == (24, 12, 12)
    assert result.row("b").note == "not called"


def test_a_failing_forward_keeps_the_shapes_up_to_there() -> None:
    result = sleuth.summary(nn.Sequential(nn.Linear(4, 5), nn.Linear(6, 7)), (2, 4))
    assert result.failure is not None
    assert result.row("0").outputs[0].shape == (2, 5)
    assert "fails in 1" in str(result)


def test_numbers_go_to_json_and_names_into_html_as_text() -> None:
    model = nn.Sequential()
    model.add_module("</td><script>", nn.Linear(2, 2))
    result = sleuth.summary(model, (1, 2))
    assert json.loads(json.dumps(result.to_dict()))["parameters"] == 6
    assert "<script>" not in result._repr_html_()
    assert result.plot().axes
