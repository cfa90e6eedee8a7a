"""A character model of a real text: MultiHeadAttention without use_causal_mask, and with it."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.cases.model.future_leaks import CONTEXT, LETTERS, windows


class Model(keras.Model):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.embedding, self.positions = layers.Embedding(len(LETTERS), 32), layers.Embedding(CONTEXT, 32)
        self.attention, self.norm = layers.MultiHeadAttention(4, 8), layers.LayerNormalization()
        self.enter, self.leave = layers.Dense(64, activation="gelu"), layers.Dense(len(LETTERS))

    def call(self, ids: Any) -> Any:
        hidden = self.embedding(ids) + self.positions(ops.arange(CONTEXT))
        mixed = self.attention(hidden, hidden, use_causal_mask=self.causal)
        return self.leave(self.enter(self.norm(hidden + mixed)))


def sick(kit: Kit) -> Subject:
    return _training(kit, causal=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, causal=True)


def _training(kit: Kit, causal: bool) -> Subject:
    x, y = windows()
    model = Model(causal)
    model(x[:2])
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
