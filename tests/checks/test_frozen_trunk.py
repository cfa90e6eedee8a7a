"""A trunk that is frozen was trained somewhere, or it is as it was drawn, in whichever layout a framework keeps its weights."""

import os
from collections.abc import Callable

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest
from keras import layers

from sleuth.adapters.keras import ADAPTER
from sleuth.core.observation import Absent, Observation
from sleuth.core.subject import Subject
from sleuth.core.trial import FrozenTrunk
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from sleuth.probes.model.freshness import fans_of, normal_draw, uniform_draw
from sleuth.probes.model.frozen_trunk import trunk
from tests.material import digits

X, Y = digits()
X = X.reshape(-1, 8, 8, 1).astype("float32")
# 16 channels in, 24 out, and a window of 3 by 5.
LAYOUTS = {"torch": (24, 16, 3, 5), "keras": (3, 5, 16, 24), "mlx": (24, 3, 5, 16)}
FAN_IN, FAN_OUT = 16 * 15, 24 * 15


def trunk_of(model: keras.Model) -> FrozenTrunk | str:
    found: list[Observation] = []
    subject = Subject(model, [(X[:32], Y[:32])])
    lab = Lab(subject, ADAPTER, 20.0)
    with ADAPTER.bench(subject) as lab.bench_:
        run_probe(reading, lab, lambda _: None)
        run_probe(trunk, lab, found.append)
    (one,) = found
    return one.reason if isinstance(one, Absent) else one


def on_a_trunk(kernel: str = "glorot_uniform", norm: bool = False) -> tuple[keras.Model, keras.Model]:
    keras.utils.set_random_seed(4)
    norms = [layers.BatchNormalization()] if norm else []
    conv = layers.Conv2D(16, 3, activation="relu", kernel_initializer=kernel)
    parts = [keras.Input((8, 8, 1)), conv, *norms, layers.Flatten(), layers.Dense(24, kernel_initializer=kernel)]
    base = keras.Sequential(parts)
    model = keras.Sequential([base, layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return base, model


@pytest.mark.parametrize(
    ("options", "mark"),
    [
        ({}, "end exactly where a fresh draw ends"),
        ({"kernel": "he_normal"}, "biases are still exactly zero"),
        ({"norm": True}, "normalisation layers still scale by exactly one"),
    ],
    ids=["uniform", "truncated", "norm"],
)
def test_a_frozen_trunk_that_was_never_trained_shows_it(options, mark) -> None:
    base, model = on_a_trunk(**options)
    base.trainable = False
    found = trunk_of(model)
    assert isinstance(found, FrozenTrunk), found
    assert mark in (found.mark or "")
    assert found.layers == 2


def test_a_trunk_that_was_trained_before_it_was_frozen_shows_no_mark() -> None:
    base, model = on_a_trunk()
    model.fit(X[:320], Y[:320], verbose=0)
    base.trainable = False
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    found = trunk_of(model)
    assert isinstance(found, FrozenTrunk), found
    assert found.mark is None


DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "glorot": lambda rng, shape: rng.uniform(-1, 1, shape) * (6 / (FAN_IN + FAN_OUT)) ** 0.5,
    "he": lambda rng, shape: rng.uniform(-1, 1, shape) * (6 / FAN_IN) ** 0.5,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("draw", DRAWS)
def test_a_uniform_draw_is_known_in_every_layout(layout, draw) -> None:
    shape = LAYOUTS[layout]
    values = DRAWS[draw](np.random.default_rng(0), shape)
    assert uniform_draw(values, fans_of(shape))
    assert not uniform_draw(values * 1.01, fans_of(shape))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("truncated", [False, True])
def test_a_normal_draw_is_known_in_every_layout(layout, truncated) -> None:
    shape, std = LAYOUTS[layout], (2 / FAN_IN) ** 0.5
    rng = np.random.default_rng(0)
    values = rng.normal(size=200_000)
    values = values[np.abs(values) < 2] / 0.8796 if truncated else values
    drawn = (values[: int(np.prod(shape))] * std).reshape(shape)
    assert normal_draw(drawn, fans_of(shape))
    assert not normal_draw(drawn * 1.2, fans_of(shape))
