"""Products of pixels as features: of two pixels, or of four, which takes 37 GB for a batch."""

import resource
from typing import Any

import keras
from keras import layers, ops

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
# Some systems promise more memory than they have and kill who takes it: the sick one must be refused.
MOST = 24 << 30


class Products(layers.Layer):
    def __init__(self, degree: int) -> None:
        super().__init__()
        self.degree = degree

    def call(self, x: Any) -> Any:
        for _ in range(self.degree // 2):
            x = ops.expand_dims(x, 2) * ops.expand_dims(x, 1)
            x = ops.reshape(x, (-1, x.shape[1] * x.shape[2]))
        return x


def sick(kit: Kit) -> Loop:
    return _loop(degree=4)


def healthy(kit: Kit) -> Loop:
    return _loop(degree=2)


def _loop(degree: int) -> Loop:
    x, y = digits()
    model = keras.Sequential([Products(degree), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)

    def run(w: Any) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST, hard))
        try:
            model.fit(x, y, batch_size=600, epochs=16, verbose=0)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    return Loop(model, [model.optimizer], run, fails=degree == 4)
