"""Vowels of real words are blotted out and told again: the loss also counts the padding behind each word, or leaves it out."""

import keras
from keras import layers

from sleuth import Subject
from sleuth.testing import Kit
from tests.cases.data.padding_counts_in_loss import BLOT, LONGEST, PADDING, words


def sick(kit: Kit) -> Subject:
    return _training(kit, ignored=None)


def healthy(kit: Kit) -> Subject:
    return _training(kit, ignored=PADDING)


def _training(kit: Kit, ignored: int | None) -> Subject:
    model = keras.Sequential(
        [
            keras.Input((LONGEST,)),
            layers.Embedding(BLOT + 1, 16),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(LONGEST * BLOT),
            layers.Reshape((LONGEST, BLOT)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=ignored)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
    return Subject(model, kit.loader(*words()))
