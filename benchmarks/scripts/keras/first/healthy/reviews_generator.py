import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(64)
rng = np.random.default_rng(64)

GOOD = ["great", "lovely", "superb", "kind", "warm", "bright", "fresh", "quick"]
BAD = ["awful", "slow", "dirty", "cold", "rude", "broken", "stale", "noisy"]
FILL = ["the", "room", "food", "staff", "place", "was", "and", "very", "we", "it", "a", "bit", "really", "there"]
vocabulary = {word: i + 1 for i, word in enumerate(GOOD + BAD + FILL)}
MAX_LEN = 14


def review():
    positive = rng.random() < 0.5
    length = rng.integers(6, MAX_LEN + 1)
    words = []
    for _ in range(length):
        r = rng.random()
        if r < 0.25:
            words.append(rng.choice(GOOD if positive else BAD))
        elif r < 0.32:
            words.append(rng.choice(BAD if positive else GOOD))
        else:
            words.append(rng.choice(FILL))
    ids = [vocabulary[w] for w in words] + [0] * (MAX_LEN - length)
    return ids, float(positive)


def corpus(n):
    rows = [review() for _ in range(n)]
    return np.array([r[0] for r in rows], dtype="int32"), np.array([[r[1]] for r in rows], dtype="float32")


x_train, y_train = corpus(1600)
x_val, y_val = corpus(400)


def stream(batch_size=40):
    while True:
        order = rng.permutation(len(x_train))
        for i in range(0, len(order), batch_size):
            idx = order[i : i + batch_size]
            yield x_train[idx], y_train[idx]


model = keras.Sequential(
    [
        keras.Input((MAX_LEN,), dtype="int32"),
        layers.Embedding(len(vocabulary) + 1, 12, mask_zero=True),
        layers.GlobalAveragePooling1D(),
        layers.Dense(16, activation="relu"),
        layers.Dropout(0.3),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(stream(), steps_per_epoch=40, epochs=7, validation_data=(x_val, y_val), verbose=2)
