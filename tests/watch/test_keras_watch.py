"""`fit` under watch: nothing changes, and what happens is seen."""

import os
import threading

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest
import torch
from keras import layers

import sleuth
from sleuth.adapters.keras import ADAPTER
from sleuth.core.history import Seen
from sleuth.core.observation import Architecture, Evaluation, LossCall, NotFinite, Origin, Role, Split, Step
from tests.material import digits

X, Y = (a[:320] for a in digits())


class Logged(keras.callbacks.Callback):
    """What the user's own callbacks are shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def on_train_batch_end(self, batch, logs=None) -> None:
        self.seen |= set(logs)


def model(last: str | None = None) -> keras.Model:
    keras.utils.set_random_seed(5)
    made = keras.Sequential(
        [layers.Dense(32, activation="relu"), layers.Dropout(0.2), layers.BatchNormalization(), layers.Dense(10, activation=last)]
    )
    made.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return made


def fit(made: keras.Model, *callbacks: keras.callbacks.Callback) -> tuple[dict, list[np.ndarray]]:
    history = made.fit(X, Y, epochs=2, batch_size=32, verbose=0, validation_split=0.2, callbacks=list(callbacks))
    return history.history, [np.array(w) for w in made.get_weights()]


def watched(made: keras.Model, *callbacks: keras.callbacks.Callback, **options):
    watch = sleuth.keras.Watch(directory=None, quiet=True, **options)
    return (*fit(made, watch, *callbacks), watch)


@pytest.fixture
def plain() -> tuple[dict, list[np.ndarray]]:
    return fit(model())


def test_weights_history_and_logs_are_the_same_with_and_without_a_watch(plain) -> None:
    logged = Logged()
    history, after, _ = watched(model(), logged, every=2)
    assert history == plain[0]
    assert all(np.array_equal(a, b) for a, b in zip(after, plain[1], strict=True))
    assert logged.seen == {"loss", "accuracy"}


def test_nothing_of_ours_is_left_behind() -> None:
    made = model()
    before = (torch.Tensor.backward, keras.layers.Layer.__call__, keras.losses.Loss.__call__, keras.Model.make_train_function)
    watched(made)
    assert (
        torch.Tensor.backward,
        keras.layers.Layer.__call__,
        keras.losses.Loss.__call__,
        keras.Model.make_train_function,
    ) == before
    assert "sleuth" not in made.train_function.__module__


def test_a_watch_sees_the_loss_of_every_step_and_the_tensors_of_some() -> None:
    _, _, watch = watched(model(), every=4)
    seen = watch.watch.history
    assert watch.watch.watching.trouble is None
    steps = Seen(seen).all(Step)
    assert len(steps) == 16
    assert all(step.loss is not None and step.lr is not None for step in steps[1:])
    roles = (Role.ACTIVATION, Role.GRADIENT, Role.WEIGHT, Role.UPDATE)
    assert all(seen.has(what) for what in (*roles, LossCall, Evaluation, Architecture))


def test_a_softmax_before_a_loss_that_has_one_is_named() -> None:
    _, _, watch = watched(model("softmax"), every=4)
    assert watch.report().culprits[0].finding.name == "double-softmax"


def test_an_exception_in_a_step_comes_through_unchanged_and_ends_the_watch() -> None:
    class Fails(keras.Sequential):
        def train_step(self, data):
            if self.optimizer.iterations.value >= 3:
                raise RuntimeError("the user's own")
            return super().train_step(data)

    made = Fails([keras.Input((64,)), layers.Dense(10)])
    made.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before, watch = torch.Tensor.backward, sleuth.keras.Watch(directory=None, quiet=True)
    with pytest.raises(RuntimeError, match="the user's own"):
        made.fit(X, Y, verbose=0, callbacks=[watch])
    assert torch.Tensor.backward is before
    assert watch.watch is not None
    assert watch.watch.watching.steps == 3


def test_a_watch_as_a_context_around_fit_sees_the_validation_by_itself() -> None:
    made = model()
    with sleuth.watch(made, directory=None, quiet=True) as w:
        history, _ = fit(made)
    assert w.watching.trouble is None
    logged = [e.metrics["loss"] for e in Seen(w.history).all(Evaluation) if e.split is Split.VALIDATION]
    assert logged == pytest.approx(history["val_loss"])


def test_a_loop_without_fit_is_watched_too() -> None:
    made, optimiser = model(), keras.optimizers.SGD(0.1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with sleuth.watch(made, optimiser, directory=None, quiet=True, every=2) as w:
        for start in range(0, 320, 32):
            made.zero_grad()
            loss(Y[start : start + 32], made(X[start : start + 32], training=True)).backward()
            weights = list(made.trainable_weights)
            with torch.no_grad():
                optimiser.apply([v.value.grad for v in weights], weights)
    steps = Seen(w.history).all(Step)
    assert [s.step for s in steps] == list(range(10))
    assert all(s.calls == ("zero_grad", "forward", "backward", "step") and s.loss is not None for s in steps)
    assert all(w.history.has(what) for what in (Role.ACTIVATION, Role.GRADIENT, Role.UPDATE, LossCall))


def test_stop_comes_before_bad_weights_are_written() -> None:
    made, bad = model(), X.copy()
    bad[32 * 4 :] = np.nan
    seen: list[list[np.ndarray]] = []
    kept = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append([np.array(v.value.detach()) for v in made.trainable_weights])
    )
    with pytest.raises(sleuth.Stopped), sleuth.watch(made, directory=None, quiet=True, on_error="stop"):
        made.fit(bad, Y, batch_size=32, shuffle=False, verbose=0, callbacks=[kept])
    assert len(seen) == 4
    after = [np.array(v.value.detach()) for v in made.trainable_weights]
    assert all(np.array_equal(a, b) for a, b in zip(seen[-1], after, strict=True))


def test_a_layer_that_is_frozen_after_the_training_learns_in_what_was_kept_of_it() -> None:
    made = model()
    made.layers[0].build((None, 64))
    made.layers[2].trainable = False
    watching = ADAPTER.watch(made, [made.optimizer], every=None, overhead=0.02, keeps=True)
    watching.open()
    fit(made)
    watching.close()
    made.layers[0].trainable = False
    kept = watching.take_kept()
    assert kept is not None
    assert kept.at_start, kept.remarks
    assert [layer.trainable for layer in kept.subject.model.layers] == [True, True, False, True]
    assert not made.layers[0].trainable


class Bare(keras.layers.Layer):
    """Without a constructor of its own."""

    def call(self, x):
        return x


def test_layers_can_be_made_while_a_watch_is_open_and_are_described_alike() -> None:
    made = model()
    with sleuth.watch(made, directory=None, quiet=True):
        bare = Bare(name="bare")
    assert bare.get_config() == Bare(name="bare").get_config()


def nans(made: keras.Model, *callbacks: keras.callbacks.Callback) -> list[np.ndarray]:
    """What is left of a training whose loss is not finite."""
    made.compile(keras.optimizers.SGD(0.01), lambda truth, scores: keras.ops.mean(keras.ops.log(scores)))
    made.fit(X, Y, epochs=1, batch_size=32, verbose=0, callbacks=list(callbacks))
    return [np.array(w) for w in made.get_weights()] + [np.asarray(keras.random.normal((3,))), torch.rand(3).numpy()]


def test_a_loss_that_is_not_finite_is_traced_without_touching_dice_and_weights() -> None:
    """What is done again draws no number of the user's, and moves no running statistics of the model's."""

    watch = sleuth.keras.Watch(directory=None, quiet=True)
    plain, watched = nans(model()), nans(model(), watch)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(plain, watched, strict=True))
    assert watch.watch is not None
    assert Seen(watch.watch.history).all(Origin)


def test_a_model_that_cannot_be_copied_trains_on_where_its_loss_is_not_finite() -> None:
    plain = nans(model())
    made, watch = model(), sleuth.keras.Watch(directory=None, quiet=True)
    made.lock = threading.Lock()
    watched = nans(made, watch)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(plain, watched, strict=True))
    assert watch.watch is not None
    assert watch.watch.watching.trouble is None
    lost = [note for note in watch.watch.notes if "could not be found out" in note]
    assert len(lost) == 1
    assert "TypeError" in lost[0]


def test_a_layer_that_cannot_be_hashed_is_no_trouble_worth_a_note() -> None:
    class Unhashable(layers.Dense):
        __hash__ = None

    with sleuth.watch(model(), directory=None, quiet=True) as watch:
        Unhashable(4).trainable = False
    assert not [note for note in watch.notes if "could not be noted" in note]


def test_a_loss_and_a_gradient_that_are_not_finite_are_met_at_their_steps_without_being_asked_for() -> None:
    """The gradient of the root of zero is infinite while the loss is finite; later rows make the loss itself so."""
    rows = np.ones((320, 4), np.float32)
    rows[32 * 2 :] = 0.0
    rows[32 * 5 :] = np.nan
    made = keras.Sequential([keras.Input((4,)), layers.Dense(1, use_bias=False, name="only")])
    made.compile(keras.optimizers.SGD(0.0), lambda truth, scores: keras.ops.mean(keras.ops.sqrt(keras.ops.abs(scores))))
    with sleuth.watch(made, directory=None, quiet=True, every=1) as w:
        made.fit(rows, np.zeros(320), batch_size=32, shuffle=False, verbose=0)
    met = {(seen.what, seen.step, seen.where) for seen in Seen(w.history).all(NotFinite)}
    assert {("gradient", 2, "only.kernel"), ("loss", 5, None)} <= met
