"""A new head on a trunk: frozen together with the trunk, nothing can learn; with the head left free it learns."""

import keras
from keras import layers

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(freeze_head=True)


def healthy(kit: Kit) -> Subject:
    return _training(freeze_head=False)


def _training(freeze_head: bool) -> Subject:
    trunk = keras.Sequential([keras.Input((64,)), layers.Dense(128, activation="relu")])
    model = keras.Sequential([trunk, layers.Dense(10)])
    (model if freeze_head else trunk).trainable = False
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
    return Subject(model, digits())
