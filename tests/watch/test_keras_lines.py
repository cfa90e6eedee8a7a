"""In Keras, too, the line that a finding names is the one to change: each script marks it."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
import torch
from keras import layers, ops

from sleuth.adapters.keras.patches import _places
from sleuth.core.report import Report
from sleuth.session.script import Options, Session
from tests.material import digits

SCRIPTS: dict[str, tuple[str, Callable[[], None], float]] = {}
X, Y = (a[:640] for a in digits())
SCORES = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def heard(script: Callable[[], None], folder: Path, budget: float = 0) -> Report:
    keras.utils.set_random_seed(1)
    session = Session("train.py", Options(directory=folder, budget=budget))
    session.attend("keras")
    script()
    session.end(None)
    assert not _places
    assert not any("ended early" in note or "stopped after" in note for note in session.main().report.notes)
    return session.main().report


def script(illness: str, *, budget: float = 0) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(function: Callable[[], None]) -> Callable[[], None]:
        SCRIPTS[function.__name__] = (illness, function, budget)
        return function

    return note


def train(model: keras.Model, loss: object = SCORES, optimiser: object = "sgd", epochs: int = 3, **options: object) -> None:
    model.compile(optimiser, loss)
    model.fit(X, Y, batch_size=32, epochs=epochs, verbose=0, **options)


def plain() -> keras.Model:
    return keras.Sequential([layers.Dense(24, activation="tanh"), layers.Dense(10)])


@script("double-softmax")
def a_layer_with_an_activation() -> None:
    rows = keras.Input((64,))
    hidden = layers.Dense(24, activation="relu")(rows)
    answer = layers.Dense(
        10,  # a layer with an activation: change this
        activation="softmax",
    )(hidden)
    train(keras.Model(rows, answer))


class Ends(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = layers.Dense(24, activation="relu")
        self.scores = layers.Dense(10)

    def call(self, rows: object) -> object:
        scores = self.scores(self.hidden(rows))
        return ops.softmax(scores)  # a function in a call: change this


@script("double-softmax")
def a_function_in_a_call() -> None:
    train(Ends())


class Halves(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = layers.Dense(24, activation="relu")
        self.head = layers.Dense(10)

    def call(self, rows: object) -> object:
        return self.head(self.trunk(rows))

    def train_step(self, data: object) -> object:
        rows, classes = data
        self.zero_grad()
        loss = self.compute_loss(y=classes, y_pred=self(rows, training=True))
        loss.backward()
        learning = self.head.trainable_weights[:]  # weights that are chosen: change this
        gradients = [v.value.grad for v in learning]
        gradients = [g.clamp(-1, 1) for g in gradients]

        with torch.no_grad():
            self.optimizer.apply_gradients(zip(gradients, learning, strict=True))
        return {"loss": loss}


@script("parameters-not-optimised")
def weights_that_are_chosen() -> None:
    train(Halves())


@script("frozen-parameters")
def a_layer_that_is_frozen() -> None:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(24, activation="relu"), layers.Dense(10)])
    model.layers[-1].trainable = False  # a layer that is frozen: change this
    train(model)


@script("optimiser-setting-odd")
def an_optimiser() -> None:
    optimiser = keras.optimizers.Adam(1e-3, epsilon=1e6)  # an optimiser: change this
    train(plain(), optimiser=optimiser)


@script("wrong-last-activation")
def a_last_layer() -> None:
    model = keras.Sequential([layers.Dense(24, activation="relu")])
    model.add(layers.Dense(1, activation="sigmoid"))  # a last layer: change this
    model.compile("sgd", "mse")
    model.fit(X, (Y - 4.5) / 2.9, batch_size=32, epochs=2, verbose=0)


def slower(epoch: int, rate: float) -> float:
    """Every time it is asked."""
    return rate * 0.01 if epoch > 1 else rate  # a function of the epoch: change this


@script("learning-rate-decayed-away")
def a_function_of_the_epoch() -> None:
    train(plain(), epochs=14, callbacks=[keras.callbacks.LearningRateScheduler(slower)])


class Slower(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        optimiser = self.model.optimizer
        optimiser.learning_rate = float(optimiser.learning_rate) * 0.7  # a callback of ones own: change this


@script("learning-rate-decayed-away")
def a_callback_of_ones_own() -> None:
    train(plain(), epochs=9, callbacks=[Slower()])


@script("learning-rate-decayed-away")
def a_schedule() -> None:
    fading = keras.optimizers.schedules.ExponentialDecay(0.05, 1, 0.7)  # a schedule: change this
    train(plain(), optimiser=keras.optimizers.SGD(fading), epochs=9)


@script("data-not-shuffled", budget=2)
def a_fit_in_order() -> None:
    order = np.argsort(Y, kind="stable")
    model = plain()
    model.compile("sgd", SCORES)
    model.fit(  # a fit in order: change this
        X[order],
        Y[order],
        shuffle=False,
        verbose=0,
    )


class Stuck(keras.utils.PyDataset):
    def __len__(self) -> int:
        return len(X) // 32

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:  # a data set of ones own: change this
        begin = number // len(self)
        return X[begin : begin + 32], Y[begin : begin + 32]


@script("same-batch-every-step", budget=2)
def a_data_set_of_ones_own() -> None:
    model = plain()
    model.compile("sgd", SCORES)
    model.fit(Stuck(), epochs=2, verbose=0, validation_data=(X[500:], Y[500:]))


@script("dropout-too-strong", budget=2)
def a_dropout() -> None:
    hidden = [layers.Dense(24, activation="relu"), layers.Dense(24, activation="relu")]
    drops = layers.Dropout(0.95)  # a dropout: change this
    train(keras.Sequential([keras.Input((64,)), hidden[0], drops, hidden[1], layers.Dense(10)]))


def sorted_rows() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    order = np.argsort(Y, kind="stable")
    while True:
        for begin in range(0, len(X) - 32, 32):
            rows = order[begin : begin + 32]
            yield X[rows], Y[rows]  # a generator: change this


@script("data-not-shuffled", budget=2)
def a_generator() -> None:
    model = plain()
    model.compile("sgd", SCORES)
    model.fit(sorted_rows(), steps_per_epoch=18, epochs=2, shuffle=False, verbose=0)


def entropy(truth: object, scores: object) -> object:
    certain = ops.sigmoid(scores * 40)
    return -ops.mean(
        truth * ops.log(certain) + (1 - truth) * ops.log(1 - certain)  # a logarithm that breaks later on: change this
    )


@script("loss-not-finite")
def a_logarithm_that_breaks_later_on() -> None:
    start = keras.initializers.RandomNormal(stddev=1e-3)
    hidden = [layers.Dense(16, activation="relu"), layers.Dropout(0.1), layers.BatchNormalization()]
    model = keras.Sequential([*hidden, layers.Dense(1, kernel_initializer=start)])
    model.compile(keras.optimizers.SGD(0.02), entropy)
    model.fit(X, (Y[:, None] > 4).astype("float32"), epochs=1, verbose=0)


def surprise(truth: object, answer: object) -> object:
    mean, spread = answer[:, :1], answer[:, 1:]
    return ops.mean(ops.square((truth - mean) / spread) / 2 + ops.log(spread))


class Spread(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.mean = layers.Dense(1)
        self.spread = layers.Dense(1, activation="relu")  # a relu that something is divided by: change this

    def call(self, rows: object) -> object:
        return ops.concatenate([self.mean(rows), self.spread(rows)], axis=-1)


@script("loss-not-finite")
def a_relu_that_something_is_divided_by() -> None:
    model = Spread()
    model.compile("sgd", surprise)
    model.fit(X, Y[:, None].astype("float32"), epochs=1, verbose=0)


@script("wrong-loss-for-task")
def a_loss_over_one_class() -> None:
    model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(1, activation="sigmoid")])
    model.compile(
        optimizer="sgd",
        metrics=["accuracy"],
        loss="categorical_crossentropy",  # a loss over one class: change this
    )
    with warnings.catch_warnings(action="ignore"):  # Keras has doubts, too
        model.fit(X, Y[:, None] > 4, epochs=1, verbose=0)


@script("wrong-loss-for-task")
def a_loss_for_one_class_at_a_time() -> None:
    model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(3, activation="sigmoid")])
    several = np.stack([Y > 2, Y > 5, Y % 2 == 0], axis=1).astype("float32")
    model.compile("sgd", loss="categorical_crossentropy")  # a loss for one class at a time: change this
    model.fit(X, several, epochs=1, verbose=0)


@script("wrong-last-activation")
def answers_that_are_no_shares() -> None:
    hidden = layers.Dense(16, activation="relu")
    answer = layers.Dense(10, activation="sigmoid")  # answers that are no shares: change this
    train(keras.Sequential([hidden, answer]), "sparse_categorical_crossentropy")


@script("softmax-wrong-axis")
def a_softmax_over_the_samples() -> None:
    hidden = layers.Dense(10)
    answer = layers.Softmax(axis=0)  # a softmax over the samples: change this
    train(keras.Sequential([hidden, answer]), "sparse_categorical_crossentropy")


class Own(layers.Layer):
    def __init__(self, units: int, start: object) -> None:
        super().__init__()
        self.units, self.start = units, start

    def build(self, shape: tuple[int, ...]) -> None:
        self.shift = self.add_weight(shape=(self.units,), initializer="zeros")
        self.matrix = self.add_weight(
            shape=(shape[-1], self.units),
            dtype="float32",
            initializer=self.start,  # weights of an own layer: change this
        )

    def call(self, rows: object) -> object:
        return ops.relu(ops.matmul(rows, self.matrix) + self.shift)


@script("bad-initialisation", budget=6)
def weights_of_an_own_layer() -> None:
    train(keras.Sequential([keras.Input((64,)), Own(64, keras.initializers.RandomUniform(0.0, 1.0)), layers.Dense(10)]))


@script("bad-initialisation", budget=6)
def an_initializer_of_a_layer() -> None:
    hidden = layers.Dense(
        24,
        activation="tanh",
        name="hidden",
        kernel_initializer="ones",  # an initializer of a layer: change this
    )
    train(keras.Sequential([keras.Input((64,)), hidden, layers.Dense(10)]))


FEW = 2  # a number of samples: change this


@script("norm-on-tiny-batch")
def a_number_of_samples() -> None:
    model = keras.Sequential([layers.Dense(8), layers.BatchNormalization(), layers.Dense(10)])
    model.compile("sgd", SCORES)
    model.fit(X[:64], Y[:64], epochs=2, verbose=0, batch_size=FEW)


class Always(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.norm, self.head = layers.Dense(16), layers.BatchNormalization(), layers.Dense(10)

    def call(self, rows: object, training: bool = False) -> object:
        hidden = self.hidden(rows)
        hidden = self.norm(hidden, training=True)  # a mode that is wired in: change this
        return self.head(hidden)


@script("validating-in-train-mode")
def a_mode_that_is_wired_in() -> None:
    train(Always(), validation_data=(X[:64], Y[:64]))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_line_to_change_is_named(name: str, tmp_path: Path) -> None:
    illness, function, budget = SCRIPTS[name]
    report = heard(function, tmp_path, budget)
    found = next((f for f in report.findings if f.name == illness), None)
    assert found is not None, [f.name for f in report.findings]
    assert found.location is not None
    mark = f"# {name.replace('_', ' ')}: change this"
    lines = Path(__file__).read_text().splitlines()
    place = next(number for number, line in enumerate(lines, 1) if line.endswith(mark))
    assert abs(found.location.line - place) <= 1, found


@pytest.mark.long
@pytest.mark.parametrize("start", ["ones", "zeros", keras.initializers.RandomNormal(stddev=2.0)])
def test_weights_of_an_own_layer_are_judged_as_those_of_any_other(start: object, tmp_path: Path) -> None:
    def train_own() -> None:
        train(keras.Sequential([keras.Input((64,)), Own(64, start), Own(64, start), layers.Dense(10)]))

    assert "bad-initialisation" in {f.name for f in heard(train_own, tmp_path, budget=6).findings}


@pytest.mark.long
def test_weights_of_an_own_layer_that_start_as_usual_are_clear(tmp_path: Path) -> None:
    def train_own() -> None:
        train(keras.Sequential([keras.Input((64,)), Own(64, "he_normal"), Own(64, "he_normal"), layers.Dense(10)]))

    assert "bad-initialisation" in heard(train_own, tmp_path, budget=6).clear
