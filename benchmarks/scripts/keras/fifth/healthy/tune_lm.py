"""Character model as a Keras subclass with its own train_step pieces left to Keras."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

from pydoc_data.topics import topics

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(30)

LENGTH = 40
text = " ".join("".join(c.lower() for c in topics["typesseq"] + topics["string-methods"] if c.isascii()).split())
chars = sorted(set(text))
index = {c: i for i, c in enumerate(chars)}
ids = np.array([index[c] for c in text])


class CharModel(keras.Model):
    def __init__(self, vocab, dim=24, units=96):
        super().__init__()
        self.embed = layers.Embedding(vocab, dim)
        self.rnn = layers.GRU(units, return_sequences=True)
        self.drop = layers.Dropout(0.1)
        self.head = layers.Dense(vocab)

    def call(self, x, training=False):
        return self.head(self.drop(self.rnn(self.embed(x)), training=training))


def windows(source, step):
    starts = np.arange(0, len(source) - LENGTH - 1, step)
    rows = source[starts[:, None] + np.arange(LENGTH + 1)]
    return rows[:, :-1], rows[:, 1:]


cut = int(0.85 * len(ids))
x_train, y_train = windows(ids[:cut], LENGTH)
x_val, y_val = windows(ids[cut:], LENGTH)
print(len(x_train), "windows for training,", len(x_val), "for validation")

model = CharModel(len(chars))
model.compile(
    optimizer=keras.optimizers.Adam(5e-3, clipnorm=1.0),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
history = model.fit(x_train, y_train, batch_size=32, epochs=5, validation_data=(x_val, y_val), verbose=0).history
for epoch, (loss, val) in enumerate(zip(history["loss"], history["val_loss"])):
    print(f"epoch {epoch}: loss {loss:.3f}  val loss {val:.3f}")

out = "the "
rng = np.random.default_rng(0)
for _ in range(25):
    window = np.array([[index[c] for c in out[-LENGTH:]]])
    logits = model.predict(window, verbose=0)[0, -1]
    p = np.exp((logits - logits.max()) / 0.7)
    out += chars[rng.choice(len(chars), p=p / p.sum())]
print(out)
