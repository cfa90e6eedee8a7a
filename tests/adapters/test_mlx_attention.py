"""Attention weights of models of MLX are those of a computation by hand."""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

import sleuth
from sleuth.adapters.mlx import ADAPTER
from sleuth.adapters.mlx.inspecting.attention import told
from sleuth.adapters.mlx.operations import Operation
from sleuth.core.errors import UnusableInput
from tests.adapters import attending as by_hand
from tests.adapters.attending import CAUSAL, HEADS, KEY, LENGTH, QUERY, SAMPLES, VALUE, WIDTH, X

FAST = "scaled_dot_product_attention"


def projected(x: mx.array, weight: np.ndarray, heads: int = HEADS) -> mx.array:
    return (x @ mx.array(weight)).reshape(*x.shape[:-1], heads, -1).swapaxes(1, 2)


class Layer(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.look = nn.MultiHeadAttention(WIDTH, HEADS)
        for part, weight in ((self.look.query_proj, QUERY), (self.look.key_proj, KEY), (self.look.value_proj, VALUE)):
            part.weight = mx.array(weight.T)
        self.causal = causal

    def __call__(self, x: mx.array) -> mx.array:
        return self.look(x, x, x, nn.MultiHeadAttention.create_additive_causal_mask(x.shape[1]) if self.causal else None)


class Function(nn.Module):
    """A mask as the word, and as booleans."""

    def __init__(self, mask: object) -> None:
        super().__init__()
        self.mask = mask

    def __call__(self, x: mx.array) -> mx.array:
        q, k, v = (projected(x, w) for w in (QUERY, KEY, VALUE))
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=math.sqrt(HEADS / WIDTH), mask=self.mask)


class Written(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def __call__(self, x: mx.array) -> mx.array:
        q, k, v = (projected(x, w) for w in (QUERY, KEY, VALUE))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(WIDTH // HEADS)
        scores = mx.where(mx.array(CAUSAL), scores, -1e9) if self.causal else scores
        return mx.softmax(scores, axis=-1).astype(x.dtype) @ v


MODELS = {
    "layer": (Layer(False), "look", "MultiHeadAttention", False),
    "causal layer": (Layer(True), "look", "MultiHeadAttention", True),
    "function": (Function(None), "", FAST, False),
    "a word": (Function("causal"), "", FAST, True),
    "booleans": (Function(mx.array(CAUSAL)), "", FAST, True),
    "by hand": (Written(False), "", "softmax", False),
    "causal by hand": (Written(True), "", "softmax", True),
}


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_those_of_a_computation_by_hand(name: str) -> None:
    model, path, kind, causal = MODELS[name]
    (found,) = ADAPTER.attention(model, mx.array(X))
    assert (found.path, found.kind) == (path, kind)
    np.testing.assert_allclose(found.weights, by_hand.weights(X, CAUSAL if causal else None), atol=1e-6)


class Shared(nn.Module):
    """Two heads share their keys; a causal mask of two queries at the end of seven keys; a sink."""

    def __init__(self, **words: object) -> None:
        super().__init__()
        self.words = words

    def __call__(self, q: mx.array, k: mx.array) -> mx.array:
        return mx.fast.scaled_dot_product_attention(q, k, k, scale=0.5, **self.words)


@pytest.mark.parametrize("words", [{}, {"mask": "causal"}, {"sinks": True}])
def test_shared_keys_late_queries_and_sinks_are_as_the_kernel_has_them(words: dict[str, object]) -> None:
    rng = np.random.default_rng(1)
    q, k, sinks = (rng.normal(size=s).astype(np.float32) for s in ((2, 4, 2, 8), (2, 2, 7, 8), (4,)))
    given = {**words, **({"sinks": mx.array(sinks)} if "sinks" in words else {})}
    (found,) = ADAPTER.attention(Shared(**given), (mx.array(q), mx.array(k)))
    scores = q @ np.repeat(k, 2, axis=1).swapaxes(-1, -2) * 0.5
    if "sinks" in words:
        beside = np.broadcast_to(sinks[:, None, None], (2, 4, 2, 1))
        expected = by_hand.softmax(np.concatenate([beside, scores], axis=-1))[..., 1:]
    else:
        expected = by_hand.softmax(scores, np.tril(np.ones((2, 7), bool), 5) if words else None)
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)


def test_half_precision_is_close() -> None:
    (found,) = ADAPTER.attention(Function(None), mx.array(X).astype(mx.bfloat16))
    np.testing.assert_allclose(found.weights, by_hand.weights(), atol=0.1)


def test_weights_that_do_not_give_what_came_out_are_refused() -> None:
    q, k, v = (projected(mx.array(X), w) for w in (QUERY, KEY, VALUE))
    right = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.5)
    for returned in (right, right * 1.01):
        heard = [Operation(FAST, (q, k, v), (returned,), "look", None, settings={"scale": 0.5})]
        if returned is right:
            assert len(told(heard, {})) == 1
            continue
        with pytest.raises(UnusableInput, match=r"in look cannot be told: what they give differs from what mx\.fast"):
            told(heard, {})


def test_a_softmax_over_classes_is_no_attention() -> None:
    with pytest.raises(UnusableInput, match="no attention was seen in Sequential"):
        ADAPTER.attention(nn.Sequential(nn.Linear(WIDTH, 3), nn.Softmax()), mx.array(X))


class Mixed(nn.Module):
    def __init__(self, product: str) -> None:
        super().__init__()
        self.product = product

    def __call__(self, x: mx.array) -> mx.array:
        shares = mx.softmax(x @ x.swapaxes(-1, -2), axis=-1)
        if self.product == "table":
            return shares @ mx.ones((LENGTH, 3))
        if self.product == "experts":
            return mx.einsum("bte,btef->btf", shares, mx.ones((SAMPLES, LENGTH, LENGTH, 3)))
        return mx.einsum("bqk, bkd -> bqd", shares, x)


def test_shares_are_an_attention_where_they_are_of_values_that_all_queries_share() -> None:
    for product in ("table", "experts"):
        with pytest.raises(UnusableInput, match="no attention was seen in Mixed"):
            ADAPTER.attention(Mixed(product), mx.array(X))
    (found,) = ADAPTER.attention(Mixed("values"), mx.array(X))
    np.testing.assert_allclose(found.weights, by_hand.softmax(X @ X.swapaxes(-1, -2))[:, None], atol=1e-5)


def test_attention_changes_nothing_and_can_be_shown() -> None:
    model = MODELS["layer"][0]
    before, plain = np.array(model.look.query_proj.weight), mx.fast.scaled_dot_product_attention
    shown = sleuth.attention(model, mx.array(X))
    assert shown["look"].shape == (SAMPLES, HEADS, LENGTH, LENGTH)
    assert "4 heads, 5 × 5" in str(shown)
    assert np.array_equal(before, np.array(model.look.query_proj.weight))
    assert mx.fast.scaled_dot_product_attention is plain
