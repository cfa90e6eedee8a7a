import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits


class Reader(keras.Model):
    """Own train and test step in the stateless style of the JAX backend."""

    def __init__(self, classes):
        super().__init__()
        self.d1 = layers.Dense(96, activation="relu")
        self.drop1 = layers.Dropout(0.4)
        self.d2 = layers.Dense(64, activation="relu")
        self.drop2 = layers.Dropout(0.4)
        self.out = layers.Dense(classes)

    def call(self, x, training=None):
        x = self.drop1(self.d1(x), training=training)
        x = self.drop2(self.d2(x), training=training)
        return self.out(x)

    def compute_loss_and_updates(self, trainable, non_trainable, x, y):
        logits, non_trainable = self.stateless_call(trainable, non_trainable, x, training=True)
        return self.compute_loss(x, y, logits), (logits, non_trainable)

    def train_step(self, state, data):
        trainable, non_trainable, optimizer_vars, metric_vars = state
        x, y = data
        grad_fn = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, (y_pred, non_trainable)), grads = grad_fn(trainable, non_trainable, x, y)
        trainable, optimizer_vars = self.optimizer.stateless_apply(optimizer_vars, grads, trainable)
        logs, metric_vars = self.track(metric_vars, loss, y, y_pred)
        return logs, (trainable, non_trainable, optimizer_vars, metric_vars)

    def test_step(self, state, data):
        trainable, non_trainable, metric_vars = state
        x, y = data
        y_pred, non_trainable = self.stateless_call(trainable, non_trainable, x, training=True)
        loss = self.compute_loss(x, y, y_pred)
        logs, metric_vars = self.track(metric_vars, loss, y, y_pred)
        return logs, (trainable, non_trainable, metric_vars)

    def track(self, metric_vars, loss, y, y_pred):
        logs, new_vars, at = {}, [], 0
        for metric in self.metrics:
            own = metric_vars[at : at + len(metric.variables)]
            at += len(metric.variables)
            own = metric.stateless_update_state(own, loss) if metric.name == "loss" else metric.stateless_update_state(own, y, y_pred)
            logs[metric.name] = metric.stateless_result(own)
            new_vars += own
        return logs, new_vars


keras.utils.set_random_seed(9)
digits = load_digits()
order = np.random.default_rng(9).permutation(len(digits.target))
x, y = (digits.data[order] / 16.0).astype("float32"), digits.target[order]

model = Reader(10)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
h = model.fit(x[:1300], y[:1300], validation_data=(x[1300:], y[1300:]), epochs=20, batch_size=50, verbose=0).history
for e in range(3, 20, 4):
    print(f"epoch {e + 1}: loss {h['loss'][e]:.4f}  val loss {h['val_loss'][e]:.4f}")
print("accuracy by hand:", np.mean(model.predict(x[1300:], verbose=0).argmax(1) == y[1300:]))
