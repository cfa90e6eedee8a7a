"""One part by itself."""

import json

import torch
from torch import nn

import sleuth
from tests.instruments.models import Block


def test_a_sound_part_gives_its_shape_for_every_batch() -> None:
    result = sleuth.try_component(Block(2, 4), (3, 2, 8, 8), expected_shape=(3, 4, 8, None), large=32)
    assert result.ok
    assert [a.batch for a in result.attempts] == [None, 0, 1, 32]
    assert [a.outputs[0].shape[0] for a in result.attempts] == [3, 0, 1, 32]


def test_another_shape_than_expected_is_told() -> None:
    result = sleuth.try_component(nn.Linear(8, 4), (3, 8), expected_shape=(3, 5), edges=False)
    assert not result.ok
    assert result.attempts[0].remark == "expected (3, 5)"


def test_a_squeeze_that_swallows_the_only_sample_is_met() -> None:
    class Squeezing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(dim=2, keepdim=True).squeeze()

    result = sleuth.try_component(Squeezing(), (3, 4, 5))
    wrong = [a.edge for a in result.attempts if not a.ok]
    assert wrong == ["one sample"]


def test_a_norm_that_cannot_train_on_one_sample_is_met_and_explained() -> None:
    result = sleuth.try_component(nn.BatchNorm1d(4), (3, 4))
    failed = {a.edge: a.failure for a in result.attempts if a.failure is not None}
    assert failed["one sample"].kind == "batch-of-one"
    assert "drop_last" in str(result)


def test_several_inputs_of_different_length_are_tried_as_they_are() -> None:
    result = sleuth.try_component(nn.MultiheadAttention(8, 2), ((5, 2, 8), (7, 2, 8), (7, 2, 8)), expected_shape=(5, 2, 8))
    assert result.ok
    assert len(result.attempts) == 1
    assert result.remarks
    assert json.loads(json.dumps(result.to_dict()))["ok"]
    assert result.plot().axes
