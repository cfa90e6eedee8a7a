"""A decoder-only transformer over words, with layers of one's own."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

from pydoc_data.topics import topics

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(14)

LENGTH, VOCAB, DIM = 24, 600, 48

words = "".join(c.lower() if c.isalpha() else " " for k in sorted(topics) for c in topics[k] + " ").split()[:24_000]
counts = {}
for w in words:
    counts[w] = counts.get(w, 0) + 1
vocabulary = ["[UNK]"] + sorted(counts, key=lambda w: (-counts[w], w))[: VOCAB - 1]
index = {w: i for i, w in enumerate(vocabulary)}
ids = np.array([index.get(w, 0) for w in words])


class TokenAndPosition(layers.Layer):
    def __init__(self, length, vocab, dim):
        super().__init__()
        self.tokens = layers.Embedding(vocab, dim)
        self.positions = layers.Embedding(length, dim)

    def call(self, x):
        return self.tokens(x) + self.positions(ops.arange(ops.shape(x)[-1]))


class DecoderBlock(layers.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, dim // heads)
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)
        self.up = layers.Dense(4 * dim, activation="gelu")
        self.down = layers.Dense(dim)

    def call(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, use_causal_mask=True)
        return x + self.down(self.up(self.norm2(x)))


def build():
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = TokenAndPosition(LENGTH, VOCAB, DIM)(inputs)
    x = DecoderBlock(DIM, 4)(x)
    x = layers.LayerNormalization(epsilon=1e-6)(x)
    outputs = layers.Dense(VOCAB)(x)
    return keras.Model(inputs, outputs)


def windows(source, step):
    starts = np.arange(0, len(source) - LENGTH - 1, step)
    rows = source[starts[:, None] + np.arange(LENGTH + 1)]
    return rows[:, :-1], rows[:, 1:]


cut = int(0.85 * len(ids))
x_train, y_train = windows(ids[:cut], 12)
x_val, y_val = windows(ids[cut:], LENGTH)

model = build()
model.compile(
    optimizer=keras.optimizers.Adam(2e-3, clipnorm=1.0),
    loss=keras.losses.SparseCategoricalCrossentropy(),
    metrics=["accuracy"],
)
history = model.fit(x_train, y_train, batch_size=32, epochs=3, validation_data=(x_val, y_val), verbose=0)
for epoch, (loss, val) in enumerate(zip(history.history["loss"], history.history["val_loss"])):
    print(f"epoch {epoch}: loss {loss:.3f}  val loss {val:.3f}  val acc {history.history['val_accuracy'][epoch]:.3f}")

prompt = x_val[:1, :LENGTH]
print(
    "...",
    " ".join(vocabulary[i] for i in prompt[0][-8:]),
    "->",
    vocabulary[model.predict(prompt, verbose=0)[0, -1].argmax()],
)
