"""Losses that somebody has written instead of compiling one, on whichever backend Keras was started with."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers, ops

from sleuth.adapters.keras import ADAPTER
from sleuth.core.observation import LossCall
from sleuth.core.subject import Parts, Subject

RNG = np.random.default_rng(3)
X = RNG.normal(size=(24, 6)).astype("float32")
Y = (X[:, 0] * X[:, 1]).astype("float32")


class Written(keras.Model):
    """Not compiled with any loss."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.answer = layers.Dense(8, activation="tanh"), layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.answer(self.hidden(x))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return self.written(y, y_pred)

    def written(self, y: Any, y_pred: Any) -> Any:
        raise NotImplementedError


class Crossed(Written):
    def written(self, y, y_pred):
        short = ops.minimum(ops.abs(y_pred - y), 0.7)  # every output meets every target here
        return ops.mean(short * short)


class Turned(Written):
    def written(self, y, y_pred):
        far = ops.squeeze(y_pred, 1) - ops.expand_dims(y, 1)  # and here, the other way round
        return ops.mean(ops.abs(far) ** 1.5)


class Paired(Written):
    def written(self, y, y_pred):
        return ops.mean(ops.abs(y_pred[:, 0] - y) ** 1.5)


class EveryPair(Written):
    """Of a distance between two sets this is what is wanted."""

    def written(self, y, y_pred):
        far = ops.expand_dims(y_pred[:, 0], 1) - ops.expand_dims(y, 0)
        return ops.mean(ops.min(far * far, axis=1))


class BesideIt(Written):
    """What a metric does is not what the loss does."""

    def written(self, y, y_pred):
        ops.mean(y_pred - y)
        return ops.mean((y_pred - ops.expand_dims(y, 1)) ** 2)


def heard(kind: type[Written]) -> LossCall:
    keras.utils.set_random_seed(2)
    model = kind()
    model.compile("adam")
    with ADAPTER.bench(Subject(model, (X, Y))) as bench:
        batch = Parts(X, Y, (X, Y))
        assert np.isfinite(bench.loss(batch))
        (call,) = [o for o in bench.observe(batch, 0) if isinstance(o, LossCall)]
    return call


def a_loss_that_crosses_its_sides_is_found_with_its_line() -> None:
    for kind, mark in ((Crossed, "every output meets every target here"), (Turned, "the other way round")):
        call = heard(kind)
        assert call.broadcast == (24, 24), kind
        assert call.broadcast_location is not None
        assert mark in call.broadcast_location.text
    assert [a.facts.shape for a in heard(Crossed).arguments] == [(24, 1), (24,)]


def losses_that_pair_their_sides_or_want_every_pair_are_left_alone() -> None:
    for kind in (Paired, EveryPair, BesideIt):
        assert heard(kind).broadcast is None, kind


LOSSES: tuple[Callable[[], None], ...] = (
    a_loss_that_crosses_its_sides_is_found_with_its_line,
    losses_that_pair_their_sides_or_want_every_pair_are_left_alone,
)
