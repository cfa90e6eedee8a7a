import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

EPOCHS, BATCH, GATHER = 40, 4, 4


class WarmupThenFlat(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warmup):
        self.peak, self.warmup = peak, warmup

    def __call__(self, step):
        step = keras.ops.cast(step, "float32")
        return self.peak * keras.ops.minimum(1.0, (step + 1.0) / self.warmup)

    def get_config(self):
        return {"peak": self.peak, "warmup": self.warmup}


def main():
    keras.utils.set_random_seed(6)
    wine = load_wine()
    train, test = next(StratifiedShuffleSplit(1, test_size=0.3, random_state=6).split(wine.data, wine.target))
    scaler = StandardScaler().fit(wine.data[train])
    x = scaler.transform(wine.data).astype("float32")
    y = keras.utils.to_categorical(wine.target, 3)

    model = keras.Sequential(
        [
            keras.Input((13,)),
            layers.GaussianNoise(0.1),
            layers.Dense(24, activation="elu", kernel_initializer="he_normal"),
            layers.Dropout(0.25),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.SGD(WarmupThenFlat(0.1, 60), momentum=0.9, gradient_accumulation_steps=GATHER, clipnorm=1.0),
        loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.05),
        metrics=["accuracy"],
    )
    log = model.fit(x[train], y[train], validation_data=(x[test], y[test]), epochs=EPOCHS, batch_size=BATCH, verbose=0).history
    for e in range(4, EPOCHS, 5):
        print(f"epoch {e + 1}: loss {log['loss'][e]:.4f} val loss {log['val_loss'][e]:.4f} val accuracy {log['val_accuracy'][e]:.3f}")
    print("errors on the test part:", int(np.sum(model.predict(x[test], verbose=0).argmax(1) != wine.target[test])), "of", len(test))


if __name__ == "__main__":
    main()
