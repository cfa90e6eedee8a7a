import os

os.environ["KERAS_BACKEND"] = "jax"

from dataclasses import dataclass

import keras
import numpy as np
from keras import layers


@dataclass
class Run:
    rate: float = 3e-6
    batch: int = 32
    epochs: int = 25
    width: int = 40
    seed: int = 61


def mixes(n, seed):
    """Concrete: seven parts of the mix and its age give the strength."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 8))
    cement, slag, ash, water, plast, coarse, fine, age = x.T
    binder = cement + 0.6 * slag + 0.4 * ash
    strength = binder / (0.4 + water) * (0.5 + np.log1p(9 * age) / 2.3) + 0.3 * plast * (1 - water)
    strength += 0.1 * np.sin(3 * coarse) * fine + rng.normal(0, 0.06, n)
    return x, strength


def build(width):
    model = keras.Sequential(name="strength")
    model.add(keras.Input((8,)))
    for _ in range(2):
        model.add(layers.Dense(width, kernel_initializer="he_normal"))
        model.add(layers.LeakyReLU(0.1))
    model.add(layers.Dense(1))
    return model


def main(run):
    keras.utils.set_random_seed(run.seed)
    x, y = mixes(3000, run.seed)
    fit = slice(0, 2400)
    x = ((x - x[fit].mean(0)) / x[fit].std(0)).astype("float32")
    y = ((y - y[fit].mean()) / y[fit].std()).astype("float32")[:, None]
    model = build(run.width)
    model.compile(optimizer=keras.optimizers.Nadam(run.rate), loss="mse", metrics=["mae"])
    history = model.fit(
        x[:2400], y[:2400], validation_data=(x[2400:], y[2400:]), epochs=run.epochs, batch_size=run.batch, verbose=0
    ).history
    for e in range(4, run.epochs, 5):
        print(
            f"epoch {e + 1:2d}: loss {history['loss'][e]:.4f} mae {history['mae'][e]:.4f} "
            f"val_loss {history['val_loss'][e]:.4f} val_mae {history['val_mae'][e]:.4f}"
        )


main(Run())
