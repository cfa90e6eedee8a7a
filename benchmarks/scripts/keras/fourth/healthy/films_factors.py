"""Recommender: factors and biases of users and films, rating = their dot product."""
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers, ops

USERS, FILMS, RATINGS = 300, 200, 20000


def make_ratings(seed):
    rng = np.random.default_rng(seed)
    taste, style = rng.normal(0, 0.6, (USERS, 3)), rng.normal(0, 0.6, (FILMS, 3))
    kindness, quality = rng.normal(0, 0.3, USERS), rng.normal(0, 0.5, FILMS)
    pairs = rng.choice(USERS * FILMS, RATINGS, replace=False)
    u, f = pairs // FILMS, pairs % FILMS
    stars = 3.4 + kindness[u] + quality[f] + (taste[u] * style[f]).sum(1) + rng.normal(0, 0.35, RATINGS)
    return u.astype("int32"), f.astype("int32"), stars.astype("float32")


class Factors(keras.Model):
    def __init__(self, size, mean):
        super().__init__()
        small = keras.initializers.RandomNormal(stddev=0.1, seed=1)
        shrink = keras.regularizers.L2(2e-5)
        self.user = layers.Embedding(USERS, size, embeddings_initializer=small, embeddings_regularizer=shrink)
        self.film = layers.Embedding(FILMS, size, embeddings_initializer=small, embeddings_regularizer=shrink)
        self.user_bias = layers.Embedding(USERS, 1, embeddings_initializer="zeros")
        self.film_bias = layers.Embedding(FILMS, 1, embeddings_initializer="zeros")
        self.mean = mean

    def call(self, pair):
        u, f = pair
        dot = ops.sum(self.user(u) * self.film(f), axis=-1)
        return self.mean + dot + self.user_bias(u)[..., 0] + self.film_bias(f)[..., 0]


keras.utils.set_random_seed(33)
users, films, stars = make_ratings(33)
cut = 17000
model = Factors(4, float(stars[:cut].mean()))
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="mse", metrics=[keras.metrics.RootMeanSquaredError(name="rmse")])
stop = keras.callbacks.EarlyStopping(monitor="val_rmse", patience=3, mode="min", restore_best_weights=True)
h = model.fit(
    (users[:cut], films[:cut]),
    stars[:cut],
    validation_data=((users[cut:], films[cut:]), stars[cut:]),
    epochs=14,
    batch_size=256,
    callbacks=[stop],
    verbose=0,
).history
for e in range(0, len(h["loss"]), 2):
    print(f"epoch {e + 1:2d}  rmse {h['rmse'][e]:.4f}  val_rmse {h['val_rmse'][e]:.4f}")
print("spread of the ratings:", stars.std(), " noise that nobody can foresee: 0.35")
