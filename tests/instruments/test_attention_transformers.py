"""Attention of real models of Hugging Face: what is shown is what they themselves say."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

import sleuth

IDS = torch.arange(14).reshape(2, 7)
MASK = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])


def bert(attention: str) -> BertModel:
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(0)
    return BertModel(BertConfig(**sizes, initializer_range=0.5, attn_implementation=attention)).eval()


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_the_weights_are_those_that_the_model_would_return(kind: str) -> None:
    with torch.no_grad():
        told = bert("eager")(input_ids=IDS, attention_mask=MASK, output_attentions=True).attentions
    found = sleuth.attention(bert(kind), {"input_ids": IDS, "attention_mask": MASK})
    assert list(found.layers) == ["encoder.layer.0.attention.self", "encoder.layer.1.attention.self"]
    for layer, own in zip(found.layers, told, strict=True):
        np.testing.assert_allclose(found[layer], own.numpy(), atol=1e-5)
    assert found[found.layers[0]][1, :, :, 5:].max() < 1e-6  # nobody looks at padding
