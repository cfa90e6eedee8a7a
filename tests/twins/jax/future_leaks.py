"""A character model of a real text: attention without its causal mask, and with it."""

import jax.numpy as jnp
import optax
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.cases.model.future_leaks import CONTEXT, LETTERS, windows


class Model(nnx.Module):
    def __init__(self, causal: bool, *, rngs: nnx.Rngs) -> None:
        self.causal = causal
        self.embedding = nnx.Embed(len(LETTERS), 32, rngs=rngs)
        self.positions = nnx.Embed(CONTEXT, 32, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
        self.norm = nnx.LayerNorm(32, rngs=rngs)
        self.enter, self.leave = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, len(LETTERS), rngs=rngs)

    def __call__(self, ids):
        hidden = self.embedding(ids) + self.positions(jnp.arange(ids.shape[1]))
        mask = nnx.make_causal_mask(ids) if self.causal else None
        hidden = self.norm(hidden + self.attention(hidden, mask=mask))
        return self.leave(nnx.gelu(self.enter(hidden)))


def cross_entropy(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def sick(kit: Kit) -> Subject:
    return _training(kit, causal=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, causal=True)


def _training(kit: Kit, causal: bool) -> Subject:
    model = Model(causal, rngs=kit.rngs)
    return Subject(model, kit.loader(*windows()), cross_entropy, kit.optimiser(model, "adam", lr=3e-3))
