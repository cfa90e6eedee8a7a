"""Every instrument on a model with everything in it: it works, and nothing of the user's is changed."""

import json

import pytest

import sleuth
from tests.instruments.leaving import left_as_it_was, various

QUICK = {
    "landscape": {"points": 3},
    "profile": {"steps": 2},
    "find_lr": {"steps": 12},
    "gradcheck": {"most": 2},
}
INSTRUMENTS = ("activations", "dead_units", "find_lr", "gradcheck", "gradients", "landscape", "overfit_batch", "profile")


@pytest.mark.parametrize("name", INSTRUMENTS)
@pytest.mark.parametrize("training", [True, False])
def test_an_instrument_leaves_everything_as_it_was(name: str, training: bool) -> None:
    if name == "overfit_batch" and not training:
        pytest.skip("the mode makes no difference to it, and it takes seconds")
    model, batches, given = various()
    model.train(training)
    with left_as_it_was(model, given["optimizer"]):
        result = getattr(sleuth, name)(model, batches, **given, **QUICK.get(name, {}))
    json.dumps(result.to_dict(), allow_nan=False)
    assert str(result)
    assert result._repr_html_()
    assert result.plot().axes


def test_weights_leaves_everything_as_it_was() -> None:
    model, _, given = various()
    with left_as_it_was(model, given["optimizer"]):
        result = sleuth.weights(model)
    json.dumps(result.to_dict(), allow_nan=False)
    assert {p.path for p in result.parameters} == {name for name, _ in model.named_parameters()}
    assert result.plot().axes


@pytest.mark.parametrize("name", [n for n in INSTRUMENTS if n not in ("activations", "dead_units")])
def test_without_a_loss_an_instrument_says_what_is_missing(name: str) -> None:
    model, batches, _ = various()
    with pytest.raises(sleuth.UnusableInput, match="a loss is missing"):
        getattr(sleuth, name)(model, batches)
