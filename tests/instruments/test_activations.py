"""Values inside a model, against plain hooks."""

import pytest
import torch
from torch import nn

import sleuth
from tests.instruments.leaving import digit_loader, mlp, various


def test_values_and_gradients_are_those_of_plain_hooks() -> None:
    model, batches, given = various()
    model.eval()
    seen: dict[str, torch.Tensor] = {}

    def keep(module, inputs, output):
        output.retain_grad()
        seen["hidden"] = output

    hook = model.hidden.register_forward_hook(keep)
    batch = batches[0]
    given["loss"](model(rows=batch["rows"], scale=batch["scale"]), batch["label"]).backward()
    hook.remove()
    found = sleuth.activations(model, batches, **given)["hidden"]
    assert torch.equal(torch.as_tensor(found.values), seen["hidden"].detach())
    assert torch.equal(torch.as_tensor(found.gradient_values), seen["hidden"].grad)
    assert found.statistics.max == seen["hidden"].max().item()


def test_calls_tuples_and_operations_have_names_of_their_own() -> None:
    model, batches, given = various()
    paths = {layer.path for layer in sleuth.activations(model, batches, **given).layers}
    assert {"act", "act#2", "rnn[0]", "rnn[1.0]", "rnn[1.1]", "head"} <= paths
    chosen = sleuth.activations(model, batches, layers="*.*", operations=True)
    assert any(layer.path.startswith("hidden.linear") for layer in chosen.layers)
    assert all("." in layer.path for layer in chosen.layers)
    assert chosen.layers[0].gradient is None, "without a loss none comes back"


def test_batches_are_taken_together() -> None:
    model, batches, _ = various()
    model.eval()
    found = sleuth.activations(model, batches, batches=3)
    assert found.samples == 96
    assert found["hidden"].statistics.count == 96 * 16
    assert found["hidden"].values.shape == (32, 16)


def test_what_is_unusual_is_said() -> None:
    model = mlp(64, 32, 32, 10)
    with torch.no_grad():
        model[0].bias.fill_(-50.0)
        model[4].weight.fill_(1e5)
        model[4].bias.fill_(1e5)
    loader, _ = digit_loader()
    found = sleuth.activations(model, loader, loss=nn.CrossEntropyLoss())
    assert found["1"].warnings[0] == "all values are 0"
    assert found["1"].sparsity == 1.0
    assert "values up to" in found["4"].warnings[0]
    assert "zero throughout" in found["0"].warnings[-1]


def test_a_name_that_no_layer_has_is_answered() -> None:
    loader, _ = digit_loader()
    with pytest.raises(sleuth.UnusableInput, match="no layer fits 'encoder'"):
        sleuth.activations(mlp(64, 10), loader, layers="encoder")
