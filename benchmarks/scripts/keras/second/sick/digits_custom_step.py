import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits

torch.set_num_threads(1)


class DeepMLP(keras.Model):
    def __init__(self, depth=8, width=64, classes=10):
        super().__init__()
        self.dense = [layers.Dense(width, use_bias=False) for _ in range(depth)]
        self.norm = [layers.BatchNormalization(momentum=0.9) for _ in range(depth)]
        self.head = layers.Dense(classes)

    def call(self, x, training=None):
        for dense, norm in zip(self.dense, self.norm):
            x = keras.ops.relu(norm(dense(x), training=training))
        return self.head(x)

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        y_pred = self(x, training=False)
        loss = self.compute_loss(y=y, y_pred=y_pred)
        loss.backward()
        weights = list(self.trainable_weights)
        grads = [w.value.grad for w in weights]
        with torch.no_grad():
            self.optimizer.apply(grads, weights)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def main():
    keras.utils.set_random_seed(9)
    x, y = load_digits(return_X_y=True)
    x = ((x - x.mean()) / x.std()).astype("float32")
    order = np.random.default_rng(9).permutation(len(x))
    x, y = x[order], y[order]
    model = DeepMLP()
    model.compile(
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(x[:1440], y[:1440], validation_data=(x[1440:], y[1440:]), epochs=10, batch_size=72, verbose=0).history
    for e in range(10):
        row = ", ".join(f"{k} {float(v[e]):.4f}" for k, v in history.items())
        print(f"epoch {e + 1}: {row}")


if __name__ == "__main__":
    main()
