"""A trunk that is set free after the optimiser was built, which goes on training the head alone, against before."""

import keras
from keras import layers

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, too_late=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, too_late=False)


def _training(kit: Kit, too_late: bool) -> Subject:
    trunk = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu")])
    model = keras.Sequential([trunk, layers.Dense(10)])
    trunk.trainable = not too_late
    optimiser = keras.optimizers.Adam(2e-3)
    optimiser.build(model.trainable_variables)
    trunk.trainable = True
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), optimiser)
