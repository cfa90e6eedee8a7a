"""Filters, feature maps, Grad-CAM and attention against an independent computation."""

import json
import math
import sys

import numpy as np
import pytest
import torch
from torch import nn

import sleuth
from tests.instruments.models import Language, Residual

IMAGES = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def test_filters_are_the_weights_of_the_first_or_the_named_convolution() -> None:
    model = Residual()
    found = sleuth.filters(model)
    assert found.layer == "stem"
    assert np.array_equal(found.values, model.stem.weight.detach().numpy())
    assert sleuth.filters(model, "body.0.conv2").values.shape == (16, 16, 3, 3)
    assert len(found.plot().axes) == 8
    assert json.loads(json.dumps(found.to_dict()))["norms"][0] == pytest.approx(float(model.stem.weight[0].detach().norm()))
    for conv in (nn.Conv1d(2, 3, 5), nn.Conv3d(1, 2, 3), nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(3, 4, 2)):
        assert sleuth.filters(nn.Sequential(conv)).plot().axes


def test_a_model_without_filters_and_a_layer_that_is_none_say_so() -> None:
    with pytest.raises(sleuth.UnusableInput, match="no convolution"):
        sleuth.filters(nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(sleuth.UnusableInput, match=r"body\.0\.conv1"):
        sleuth.filters(Residual(), "head")


def test_feature_maps_are_what_the_layer_puts_out_also_before_an_inplace_activation() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(144, 2))
    found = sleuth.feature_maps(model, IMAGES)
    assert np.allclose(found["0"], model[0](IMAGES).detach())
    assert found["0"].min() < 0
    every = sleuth.feature_maps(model, IMAGES, ["*"])
    assert [m.path for m in every.maps] == ["0", "1", "2", "3"]
    for layer in ("0", "3"):
        assert every.plot(layer).axes
    assert json.loads(json.dumps(every.to_dict()))["layers"][0]["shape"] == [3, 4, 6, 6]
    with pytest.raises(sleuth.UnusableInput, match="no layer is called 'conv9'"):
        sleuth.feature_maps(model, IMAGES, "conv9")


def test_gradcam_is_the_mean_gradient_times_the_map() -> None:
    model = Residual(2)
    found = sleuth.gradcam(model, IMAGES, "stem", target=[1, 2, 3], classes=list("abcdefghij"))
    model.eval()
    maps = model.stem(IMAGES).detach().requires_grad_()
    scores = model.head(model.body(maps).mean(dim=(2, 3)))
    (gradient,) = torch.autograd.grad(scores[[0, 1, 2], [1, 2, 3]].sum(), maps)
    expected = (gradient.mean(dim=(2, 3), keepdim=True) * maps).sum(dim=1).clamp(min=0)
    assert np.allclose(found.found.maps, expected.detach(), atol=1e-6)
    assert found.targets == (1, 2, 3)
    assert found.overlay(1).shape == (8, 8, 3)
    assert len(found.plot().axes) == 9
    json.dumps(found.to_dict())


def test_gradcam_works_on_frozen_trunks_half_maps_and_several_inputs() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(inplace=True))
            self.head = nn.Linear(4, 3)
            self.requires_grad_(False)

        def forward(self, image: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": self.head(self.trunk(image).mean(dim=(2, 3))) * scale}

    found = sleuth.gradcam(Both(), {"image": IMAGES, "scale": torch.tensor(2.0)})
    assert found.found.maps.shape == (3, 3, 3)
    assert found.heat.shape == (3, 8, 8)
    with pytest.raises(sleuth.UnusableInput, match="from 0 to 2"):
        sleuth.gradcam(Both(), {"image": IMAGES, "scale": torch.tensor(2.0)}, target=5)
    with pytest.raises(sleuth.UnusableInput, match="a layer with a map"):
        sleuth.gradcam(Both(), {"image": IMAGES, "scale": torch.tensor(2.0)}, "head")


def test_without_captum_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum", None)
    with pytest.raises(sleuth.UnusableInput, match="pip install captum"):
        sleuth.gradcam(Residual(1), IMAGES)


def test_attention_of_a_causal_model_looks_back_only() -> None:
    ids = torch.arange(6)[None]
    found = sleuth.attention(Language(2), ids, tokens=["the", "cat", "sat", "on", "a", "mat"])
    assert found.layers == ("layers.0", "layers.1")
    weights = found["layers.1"]
    assert weights.shape == (1, 2, 6, 6)
    assert np.allclose(weights.sum(axis=-1), 1, atol=1e-6)
    assert np.allclose(np.triu(weights[0, 0], 1), 0)
    labels = [t.get_text() for t in found.plot("layers.1").axes[0].get_xticklabels()]
    assert labels == ["the", "cat", "sat", "on", "a", "mat"]
    assert found.plot().axes
    json.dumps(found.to_dict())


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_of_torchs_own_layer_is_what_it_returns_itself(batch_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first).eval()
    x = torch.rand(2, 5, 8)
    own = x if batch_first else x.transpose(0, 1)
    _, expected = layer.self_attn(own, own, own, average_attn_weights=False)
    found = sleuth.attention(layer, own)
    assert found.maps[0].path == "self_attn"
    assert np.allclose(found.maps[0].weights, expected.detach(), atol=1e-6)


def test_attention_that_is_written_by_hand_is_seen() -> None:
    class Hand(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weights = torch.softmax(x @ x.transpose(-2, -1) / math.sqrt(x.shape[-1]), dim=-1)
            return nn.functional.dropout(weights, 0.5) @ x

    x = torch.rand(2, 3, 5, 4)
    found = sleuth.attention(Hand(), x)
    assert np.allclose(found.maps[0].weights, torch.softmax(x @ x.mT / 2, -1), atol=1e-6)


def test_attention_that_a_model_returns_when_asked_is_taken() -> None:
    class Asked(nn.Module):
        """As the models of Hugging Face with eager attention: nothing is given unless `output_attentions` is."""

        def forward(self, ids: torch.Tensor, output_attentions: bool = False) -> dict[str, object]:
            weights = torch.full((len(ids), 2, 4, 4), 0.25)
            return {"logits": ids.float(), "attentions": (weights, weights) if output_attentions else None}

    found = sleuth.attention(Asked(), (3, 4), dtype="int64")
    assert found.layers == ("attentions.0", "attentions.1")
    assert found.entropy("attentions.0") == pytest.approx([1, 1])


def test_a_model_without_attention_says_so() -> None:
    with pytest.raises(sleuth.UnusableInput, match="no attention was seen in Residual"):
        sleuth.attention(Residual(1), IMAGES)
