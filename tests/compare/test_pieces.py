"""Layers that are one piece in one framework and several in another: attention, and cells of recurrent layers."""

from typing import Any

import jax
import jax.numpy as jnp
import keras
import mlx.core as mx
import mlx.nn as mnn
import numpy as np
import optax
import pytest
import torch
from flax import nnx
from torch import nn

import sleuth
from tests.compare.models import Y, subject
from tests.compare.test_frameworks import TOKENS, Words, in_mlx

ROWS = np.random.default_rng(0).normal(size=(7, 9, 8)).astype(np.float32)
BATCH = (ROWS, Y[:7])


class Attending(nn.Module):
    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.mixed, self.head = nn.MultiheadAttention(8, heads, batch_first=True), nn.Linear(8, 4)
        nn.init.normal_(self.mixed.in_proj_bias)  # torch's own are zeros, which would fit anywhere

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.mixed(x, x, x, need_weights=False)[0].mean(1))


class AttendingInNnx(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.mixed = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=rngs)
        self.head = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.head(self.mixed(x).mean(1))


class AttendingInMlx(mnn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixed, self.head = mnn.MultiHeadAttention(8, 2, bias=True), mnn.Linear(8, 4)

    def __call__(self, x: mx.array) -> mx.array:
        return self.head(self.mixed(x, x, x).mean(1))


class ReadingInNnx(nnx.Module):
    def __init__(self, cell: Any, rngs: nnx.Rngs) -> None:
        self.table = nnx.Embed(20, 6, rngs=rngs)
        self.reader = nnx.RNN(cell(6, 5, rngs=rngs))
        self.head = nnx.Linear(5, 4, rngs=rngs)

    def __call__(self, ids: jax.Array) -> jax.Array:
        return self.head(self.reader(self.table(ids))[:, -1])


def in_jax(model: Any) -> sleuth.Subject:
    def loss(output: jax.Array, target: jax.Array) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(output, jnp.asarray(target)).mean()

    return sleuth.Subject(model, None, loss, optax.adam(1e-3))


def in_keras() -> sleuth.Subject:
    rows = keras.Input((9, 8))
    mixed = keras.layers.MultiHeadAttention(2, 4)(rows, rows)
    scores = keras.layers.Dense(4)(keras.ops.mean(mixed, axis=1))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = keras.Model(rows, scores)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)
    return sleuth.Subject(model, None)


OTHERS = {
    "nnx": lambda: in_jax(AttendingInNnx(nnx.Rngs(0))),
    "keras": in_keras,
    "mlx": lambda: in_mlx(AttendingInMlx(), bias_correction=True),
}


@pytest.mark.parametrize("other", OTHERS)
def test_attention_is_carried_whichever_way_its_projections_lie(other: str) -> None:
    found = sleuth.compare(subject(Attending()), OTHERS[other](), BATCH)
    (pair,) = found.pairs
    assert not pair.not_carried, str(found)
    assert not [row for row in pair.rows if row.differs and row.stage != "step"], str(found)
    assert {row.stage for row in pair.rows} >= {"output", "loss", "gradient"}


def test_another_number_of_heads_is_a_difference_in_the_attention() -> None:
    found = sleuth.compare(subject(Attending(heads=4)), OTHERS["mlx"](), BATCH)
    assert found.status == "differs", str(found)
    assert found.pairs[0].notes[0] == "mixed has 4 heads, mixed has 2"


@pytest.mark.parametrize("cell", [nnx.LSTMCell, nnx.OptimizedLSTMCell])
def test_a_cell_with_a_layer_for_each_gate_answers_alike(cell: Any) -> None:
    found = sleuth.compare(subject(Words()), in_jax(ReadingInNnx(cell, nnx.Rngs(0))), (TOKENS, Y[:7]))
    (pair,) = found.pairs
    assert not pair.not_carried, str(found)
    assert not [row for row in pair.rows if row.differs and row.stage in ("output", "loss")], str(found)
