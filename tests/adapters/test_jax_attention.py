"""Attention weights of models of JAX are those of a computation by hand, whoever wrote the attention."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import sleuth
from sleuth.adapters.jax import ADAPTER
from sleuth.core.errors import UnusableInput
from tests.adapters import attending as by_hand
from tests.adapters.attending import CAUSAL, HEADS, KEY, LENGTH, OUT, QUERY, SAMPLES, VALUE, WIDTH, X

PARAMS = {"q": jnp.asarray(QUERY), "k": jnp.asarray(KEY), "v": jnp.asarray(VALUE), "o": jnp.asarray(OUT)}


class Flax(nnx.Module):
    def __init__(self, causal: bool, rate: float = 0.0) -> None:
        self.look = nnx.MultiHeadAttention(HEADS, WIDTH, dropout_rate=rate, decode=False, rngs=nnx.Rngs(0))
        self.causal = causal
        for part, weight in ((self.look.query, QUERY), (self.look.key, KEY), (self.look.value, VALUE)):
            part.kernel[...] = jnp.asarray(weight.reshape(WIDTH, HEADS, -1))

    def __call__(self, x):
        return self.look(x, mask=nnx.make_causal_mask(x[..., 0]) if self.causal else None)


class Equinox(eqx.Module):
    look: eqx.nn.MultiheadAttention
    causal: bool

    def __init__(self, causal: bool) -> None:
        plain = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=jax.random.key(0))
        weights = [jnp.asarray(w.T) for w in (QUERY, KEY, VALUE)]
        self.look = eqx.tree_at(lambda m: [m.query_proj.weight, m.key_proj.weight, m.value_proj.weight], plain, weights)
        self.causal = causal

    def __call__(self, x):
        return self.look(x, x, x, mask=jnp.asarray(CAUSAL) if self.causal else None)


def heads(x, w):
    return (x @ w).reshape(*x.shape[:-1], HEADS, -1)


def function(causal):
    def apply(p, x):
        seen = jax.nn.dot_product_attention(heads(x, p["q"]), heads(x, p["k"]), heads(x, p["v"]), is_causal=causal)
        return seen.reshape(x.shape) @ p["o"]

    return apply, PARAMS


def written(causal):
    """With einsum, and the exponential by hand."""

    def apply(p, x):
        scores = jnp.einsum("bqhd,bkhd->bhqk", heads(x, p["q"]), heads(x, p["k"])) / jnp.sqrt(WIDTH // HEADS)
        scores = jnp.where(CAUSAL, scores, -1e9) if causal else scores
        shares = jnp.exp(scores - scores.max(-1, keepdims=True))
        return jnp.einsum("bhqk,bkhd->bqhd", shares / shares.sum(-1, keepdims=True), heads(x, p["v"])).reshape(x.shape) @ p["o"]

    return apply, PARAMS


def by_head(causal):
    """One head under `vmap`: in the product heads stand before samples."""
    stacked = {name: jnp.asarray(w.reshape(WIDTH, HEADS, -1).transpose(1, 0, 2)) for name, w in PARAMS.items()}

    def one(p, x):
        scores = (x @ p["q"]) @ (x @ p["k"]).swapaxes(-1, -2) / jnp.sqrt(WIDTH // HEADS)
        return jax.nn.softmax(jnp.where(CAUSAL, scores, -jnp.inf) if causal else scores) @ (x @ p["v"])

    return (lambda p, x: jax.vmap(one, (0, None))(p, x).sum(0)), stacked


MODELS = {
    "flax": (Flax, "look", "MultiHeadAttention"),
    "flax with dropout": (lambda causal: Flax(causal, 0.5), "look", "MultiHeadAttention"),
    "equinox": (Equinox, "look", "MultiheadAttention"),
    "function": (function, "", "dot_product_attention"),
    "by hand": (written, "", "softmax"),
    "head by head": (by_head, "", "softmax"),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_those_of_a_computation_by_hand(name, causal) -> None:
    make, path, kind = MODELS[name]
    (found,) = ADAPTER.attention(make(causal), X)
    assert (found.path, found.kind) == (path, kind)
    np.testing.assert_allclose(found.weights, by_hand.weights(X, CAUSAL if causal else None), atol=1e-6)


def test_heads_that_share_keys_are_told_one_by_one() -> None:
    q, k = jax.random.normal(jax.random.key(0), (2, 5, 4, 3)), jax.random.normal(jax.random.key(1), (2, 7, 2, 3))
    model = (lambda p, x: jax.nn.dot_product_attention(x[0] * p["one"], x[1], x[1], scale=0.3), {"one": jnp.ones(())})
    (found,) = ADAPTER.attention((lambda p, q, k: model[0](p, (q, k)), model[1]), (q, k))
    repeated = np.repeat(np.asarray(k), 2, axis=2)
    expected = by_hand.softmax(np.einsum("bqhd,bkhd->bhqk", np.asarray(q), repeated) * 0.3)
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)


def test_one_sequence_without_an_axis_for_samples_is_one_sample() -> None:
    class Own(Equinox):
        """Takes a whole batch, of which it looks at the first."""

        def __call__(self, batch):
            return self.look(batch[0], batch[0], batch[0])[None] + 0 * batch

    (found,) = ADAPTER.attention(Own(False), X)
    np.testing.assert_allclose(found.weights, by_hand.weights(X[:1]), atol=1e-6)


def test_layers_in_a_scan_are_told_round_by_round() -> None:
    twice = {name: jnp.stack([w, -w]) for name, w in PARAMS.items()}
    apply, _ = function(True)
    model = (lambda p, x: jax.lax.scan(lambda carry, one: (apply(one, carry), None), x, p)[0], twice)
    first, second = ADAPTER.attention(model, X)
    np.testing.assert_allclose(first.weights, by_hand.weights(X, CAUSAL), atol=1e-6)
    halfway = np.asarray(apply(PARAMS, jnp.asarray(X)))
    np.testing.assert_allclose(second.weights, by_hand.weights(halfway, CAUSAL), atol=1e-5)


def test_a_softmax_that_is_not_over_values_is_no_attention() -> None:
    mixture = {"gate": jnp.ones((WIDTH, 3)), "experts": jnp.ones((3, WIDTH, WIDTH)), "table": jnp.ones((WIDTH, WIDTH))}

    def experts(p, x):
        made = jnp.einsum("btd,edf->btef", x, p["experts"])
        return jnp.einsum("bte,btef->btf", jax.nn.softmax(x @ p["gate"]), made)

    def kernel(p, x):
        return jnp.exp(-jnp.square(x @ x.swapaxes(-1, -2))) @ (x @ p["table"])

    for apply in (experts, kernel, lambda p, x: jax.nn.softmax(x) @ p["table"], lambda p, x: jax.nn.softmax(x @ p["table"])):
        with pytest.raises(UnusableInput, match="no attention was seen in a tree of parameters: no softmax is multiplied"):
            ADAPTER.attention((apply, mixture), X)


def test_attention_changes_nothing_and_can_be_shown() -> None:
    model = Flax(True)
    before = [np.asarray(a).copy() for a in jax.tree.leaves(nnx.state(model, nnx.Param))]
    shown = sleuth.attention(model, X)
    assert shown.layers == ("look",)
    assert shown["look"].shape == (SAMPLES, HEADS, LENGTH, LENGTH)
    assert "4 heads, 5 × 5" in str(shown)
    assert all(np.array_equal(a, b) for a, b in zip(before, jax.tree.leaves(nnx.state(model, nnx.Param)), strict=True))


def test_half_precision_is_close() -> None:
    half = {name: w.astype(jnp.bfloat16) for name, w in PARAMS.items()}
    (found,) = ADAPTER.attention((function(False)[0], half), jnp.asarray(X, jnp.bfloat16))
    np.testing.assert_allclose(found.weights, by_hand.weights(), atol=0.1)
    assert found.weights.dtype == np.float32
