import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch
from keras import layers, ops
from sklearn.datasets import load_digits


class TiedDecoder(layers.Layer):
    """Goes back through the transposed weights of another layer; only the bias is its own."""

    def __init__(self, partner, activation=None):
        super().__init__()
        self.partner = partner
        self.activation = keras.activations.get(activation)

    def build(self, input_shape):
        self.bias = self.add_weight(shape=(self.partner.kernel.shape[0],), initializer="zeros", name="bias")

    def call(self, h):
        return self.activation(ops.matmul(h, ops.transpose(self.partner.kernel)) + self.bias)


class DenoisingAutoencoder(keras.Model):
    def __init__(self, noise):
        super().__init__()
        self.noise = noise
        self.e1 = layers.Dense(64, activation="tanh")
        self.e2 = layers.Dense(24, activation="tanh")
        self.e1.build((None, 64))
        self.e2.build((None, 64))
        self.d2 = TiedDecoder(self.e2, "tanh")
        self.d1 = TiedDecoder(self.e1)

    def call(self, x):
        return self.d1(self.d2(self.e2(self.e1(x))))

    def train_step(self, data):
        x = data
        self.zero_grad()
        keep = (torch.rand_like(x) > 0.2).float()
        dirty = x * keep + self.noise * torch.randn_like(x)
        loss = ops.mean(ops.square(self(dirty, training=True) - x))
        loss.backward()
        weights = list(self.trainable_weights)
        with torch.no_grad():
            self.optimizer.apply([w.value.grad for w in weights], weights)
        return {"loss": loss}


keras.utils.set_random_seed(4)
x = (load_digits().data / 16.0).astype("float32")
rng = np.random.default_rng(4)
rng.shuffle(x)
mean = x[:1400].mean(0)
x -= mean
train, test = x[:1400], x[1400:]
dirty = (test * (rng.random(test.shape) > 0.2) + rng.normal(0, 0.2, test.shape)).astype("float32")

model = DenoisingAutoencoder(noise=0.2)
model.compile(optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, 20 * 35)))
print(f"error of the dirty pictures {np.mean((dirty - test) ** 2):.4f}, variance {np.mean(test.var(0)):.4f}")
for epoch in range(0, 20, 4):
    log = model.fit(train, batch_size=40, epochs=4, verbose=0)
    clean = model.predict(dirty, verbose=0)
    print(f"epoch {epoch + 4}: loss {log.history['loss'][-1]:.4f}, error of the cleaned {np.mean((clean - test) ** 2):.4f}")
