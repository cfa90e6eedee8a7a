"""Short reviews, good or bad; words padded with zero and masked through the LSTM."""
import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers

GOOD = "lovely bright clever warm funny moving fresh honest".split()
BAD = "dull loud clumsy cold boring flat stale phoney".split()
FILLER = "the film was a story with some scenes and an actor who plays music in it for two hours".split()
LENGTH = 14


def review(rng):
    label = int(rng.integers(2))
    words = list(rng.choice(FILLER, rng.integers(4, 10)))
    for _ in range(rng.integers(1, 4)):
        flip = rng.random() < 0.3
        word = str(rng.choice(GOOD if (label == 1) != flip else BAD))
        at = int(rng.integers(0, len(words) + 1))
        words[at:at] = ["not", word] if flip else [word]
    return words[:LENGTH], label


def encode(samples, index):
    ids = np.zeros((len(samples), LENGTH), dtype="int32")
    for row, (words, _) in zip(ids, samples):
        row[: len(words)] = [index[w] for w in words]
    return ids, np.array([label for _, label in samples], dtype="float32")


rng = np.random.default_rng(0)
samples = [review(rng) for _ in range(2400)]
index = {w: i + 1 for i, w in enumerate(sorted({w for words, _ in samples for w in words}))}
x, y = encode(samples, index)

keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        layers.Embedding(len(index) + 1, 16, mask_zero=True),
        layers.LSTM(24),
        layers.Dropout(0.2),
        layers.Dense(1),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(4e-3, global_clipnorm=1.0),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
)
for epoch in range(5):
    log = model.fit(x[:2000], y[:2000], batch_size=64, epochs=1, verbose=0).history
    loss, acc = model.evaluate(x[2000:], y[2000:], batch_size=200, verbose=0)
    print(f"epoch {epoch + 1}: loss {log['loss'][0]:.3f}  test loss {loss:.3f} accuracy {acc:.3f}")
