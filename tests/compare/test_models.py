"""Where two models part, and why: each reason is made, found, and shown to make the difference vanish."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import sleuth
from tests.compare.models import IMAGES, Images, X, Y, mlp, mlp_by_hand, subject


def test_the_same_model_with_other_weights_is_the_same() -> None:
    found = sleuth.compare(subject(mlp()), subject(mlp()), (X, Y))
    assert found.status == "same", str(found)
    assert {row.stage for row in found.pairs[0].rows} == {"layer", "output", "loss", "gradient", "step"}
    assert found.pairs[0].carried == 8


@pytest.mark.parametrize(
    ("other", "stage", "where", "reason", "words"),
    [
        (lambda: subject(mlp(epsilon=1e-6)), "layer", "1", "epsilon", ("epsilon 1e-05", "epsilon 1e-06")),
        (lambda: subject(mlp(approximate="tanh")), "layer", "2", "variant", ("erf (exact)", "tanh (approximate)")),
        (lambda: subject(mlp(), loss=nn.CrossEntropyLoss(reduction="sum")), "loss", "loss", "reduction", ("summed over the 12",)),
        (
            lambda: subject(mlp(), torch.optim.AdamW, weight_decay=0.1),
            "step",
            "0.weight",
            "weight decay",
            ("weight decay 0.1 beside it",),
        ),
        (lambda: subject(mlp(), torch.optim.SGD), "step", "0.weight", "rule", ("Adam", "plain descent")),
    ],
)
def test_the_first_difference_is_named_with_its_reason(other, stage, where, reason, words) -> None:
    found = sleuth.compare(subject(mlp()), other(), (X, Y))
    assert found.status == "differs"
    assert (found.parted.stage, found.parted.first) == (stage, where)
    assert found.reasons[0].name == reason
    assert found.reasons[0].after < found.reasons[0].before / 20
    assert all(word in found.reasons[0].text for word in words), found.reasons[0].text


def test_padding_on_one_side_is_told_from_padding_on_both() -> None:
    found = sleuth.compare(subject(Images(2, 1)), subject(Images(2, 0, last=True)), (IMAGES, Y[:6]))
    assert found.parted.first == "conv"
    assert "padding of 1 before and 0 after" in found.reasons[0].text
    assert "padding of 0 before and 1 after" in found.reasons[0].text


def test_running_statistics_are_carried_over() -> None:
    trained, fresh = Images(), Images()
    trained(torch.as_tensor(IMAGES))
    assert not torch.equal(trained.norm.running_mean, fresh.norm.running_mean)
    assert sleuth.compare(subject(trained), subject(fresh), (IMAGES, Y[:6])).status == "same"


def test_a_model_by_hand_is_the_same_but_for_its_gelu() -> None:
    found = sleuth.compare(subject(mlp(approximate="tanh")), mlp_by_hand(), (X, Y), exact=subject(mlp()))
    same, other = found.pairs
    assert same.status == "same", str(found)
    assert same.carried == 8
    assert max(row.difference for row in same.rows if row.stage != "step") < 1e-12
    assert (other.status, other.parted.first) == ("differs", "2")
    assert [b.status for b in found.backends] == ["same", "same", "differs"]


def test_more_layers_are_unknown_rather_than_different() -> None:
    longer = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 12), nn.Linear(12, 4))
    found = sleuth.compare(mlp(), longer, (X, Y))
    assert found.status == "unknown"
    assert any("only" in text for text in found.pairs[0].not_carried)


def test_a_model_that_fails_has_its_row_in_the_table() -> None:
    found = sleuth.compare(mlp(), mlp(), (X, Y), wrong=nn.Linear(7, 4))
    assert [b.status for b in found.backends] == ["same", "same", "failed"]
    assert "mat1 and mat2" in found.backends[2].error
    assert found.status == "failed"


def test_nothing_of_the_users_is_changed() -> None:
    a, b = subject(mlp()), subject(mlp(epsilon=1e-3))
    before = copy.deepcopy((a.model.state_dict(), b.model.state_dict(), a.optimizer.state_dict()))
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    sleuth.compare(a, b, (X, Y))
    after = (a.model.state_dict(), b.model.state_dict(), a.optimizer.state_dict())
    assert all(torch.equal(x, y) for i in (0, 1) for x, y in zip(before[i].values(), after[i].values(), strict=True))
    assert before[2] == after[2]
    assert torch.equal(torch_state, torch.get_rng_state())
    assert np.array_equal(numpy_state, np.random.get_state()[1])
    assert all(p.grad is None for p in a.model.parameters())


def test_the_result_is_numbers_text_and_html() -> None:
    import json

    found = sleuth.compare(mlp(), mlp(epsilon=1e-3), X)
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["status"] == "differs"
    assert facts["pairs"][0]["parted"]["first"] == "1"
    assert "they part in 1" in str(found)
    assert found._repr_html_().startswith("<pre>")
    with pytest.raises(AssertionError, match="they part in 1"):
        found.require_same()


def test_a_batch_must_come_from_somewhere() -> None:
    with pytest.raises(sleuth.UnusableInput, match="give a batch"):
        sleuth.compare(mlp(), mlp())
