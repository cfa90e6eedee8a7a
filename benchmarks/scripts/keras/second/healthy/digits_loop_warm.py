"""Own loop on the torch backend, linear warm-up and clipping of the gradient's norm."""
import os
os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warm):
        self.peak, self.warm = peak, warm

    def __call__(self, step):
        step = keras.ops.cast(step, "float32") + 1.0
        return self.peak * keras.ops.minimum(step / self.warm, keras.ops.rsqrt(step / self.warm))


def make_model():
    inp = keras.Input((64,))
    x = layers.Dense(96)(inp)
    x = layers.BatchNormalization(momentum=0.9)(x)
    x = layers.Activation("relu")(x)
    x = layers.Dropout(0.3)(x)
    x = layers.Dense(48, activation="relu")(x)
    return keras.Model(inp, layers.Dense(10)(x))


def accuracy(model, x, y):
    with torch.no_grad():
        return float((model(x, training=False).argmax(dim=-1) == y).float().mean())


def main():
    torch.set_num_threads(1)
    keras.utils.set_random_seed(41)
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(41).permutation(len(x))
    x = torch.tensor(x[order] / 16.0 - 0.3, dtype=torch.float32)
    y = torch.tensor(y[order])
    xtr, ytr, xva, yva = x[:1440], y[:1440], x[1440:], y[1440:]
    model = make_model()
    optimizer = keras.optimizers.Adam(WarmUp(4e-3, 60))
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(14):
        total = 0.0
        batches = torch.randperm(len(xtr)).split(48)
        for b in batches:
            model.zero_grad()
            loss = loss_fn(ytr[b], model(xtr[b], training=True))
            loss.backward()
            params = [v.value for v in model.trainable_variables]
            torch.nn.utils.clip_grad_norm_(params, 2.0)
            with torch.no_grad():
                optimizer.apply([p.grad for p in params], model.trainable_variables)
            total += loss.item()
        print(f"epoch {epoch + 1:2d} loss {total / len(batches):.4f} val acc {accuracy(model, xva, yva):.4f}")


if __name__ == "__main__":
    main()
