"""Run by test_keras_on_jax.py in a process of its own: Keras has one backend a process."""

import os
import sys
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers

import sleuth
from sleuth.adapters.keras import ADAPTER
from sleuth.adapters.keras.watching.evaluating import Around
from sleuth.core.history import Seen
from sleuth.core.observation import LossCall, Role, Step
from sleuth.testing.conformance import rules
from tests.adapters.keras_looks import LOOKS
from tests.adapters.keras_losses import LOSSES
from tests.grid import cases_of, diagnosed
from tests.kits.keras_kit import KerasKit
from tests.material import digits

X, Y = (a[:320] for a in digits())
# Every rule runs on both backends under --full; these are the ones that depend on the backend most.
RULES = (
    "gradients_agree_with_numerical_ones",
    "a_snapshot_brings_everything_back",
    "a_whole_model_is_connected_and_finite",
    "a_forward_pass_is_followed_from_the_input_to_the_output",
    "statistics_equal_numpys",
)
# The grid builds Keras' cases on torch. These are cheap, and each comes by another way: what a step puts out, a loss that is
# followed, a schedule.
CASES = ("predicts-one-class", "loss-broadcasts", "learning-rate-decayed-away")


class Logged(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def on_train_batch_end(self, batch, logs=None) -> None:
        self.seen |= set(logs)


def model(last: str | None = None) -> keras.Model:
    keras.utils.set_random_seed(5)
    made = keras.Sequential([layers.Dense(32, activation="relu"), layers.Dropout(0.2), layers.Dense(10, activation=last)])
    made.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made


def fit(made: keras.Model, *callbacks: keras.callbacks.Callback) -> tuple[dict, list[np.ndarray]]:
    history = made.fit(X, Y, epochs=2, batch_size=32, verbose=0, callbacks=list(callbacks))
    return history.history, [np.array(w) for w in made.get_weights()]


def keeps_the_rules(names: tuple[str, ...] | None = RULES) -> None:
    for rule in rules():
        if rule.applies(ADAPTER) and (names is None or rule.name in names):
            rule.run(ADAPTER, KerasKit())


def leaves_fit_as_it_is() -> None:
    history, weights = fit(model())
    logged, watch = Logged(), sleuth.keras.Watch(directory=None, quiet=True, every=2)
    also, after = fit(model(), logged, watch)
    assert also == history
    assert all(np.array_equal(a, b) for a, b in zip(after, weights, strict=True))
    assert logged.seen == {"loss"}
    assert watch.watch is not None
    assert watch.watch.watching.trouble is None, watch.watch.watching.trouble
    seen = Seen(watch.watch.history)
    assert [s.loss is not None for s in seen.all(Step)] == [True] * 20
    for what in (Role.ACTIVATION, Role.GRADIENT, Role.WEIGHT, Role.UPDATE, LossCall):
        assert watch.watch.history.has(what), what


def names_a_second_softmax() -> None:
    watch = sleuth.keras.Watch(directory=None, quiet=True, every=4)
    fit(model("softmax"), watch)
    assert watch.report().culprits[0].finding.name == "double-softmax"


def looks_as_numpy_does() -> None:
    for look in LOOKS:
        look()


def follows_losses_that_somebody_has_written() -> None:
    for ask in LOSSES:
        ask()


def gives_experiments_the_time_that_compiling_takes() -> None:
    made = model()
    watching = ADAPTER.watch(made, [made.optimizer], every=None, overhead=0.02, keeps=True)
    watching.open()
    fit(made)
    watching.close()
    kept = watching.take_kept()
    assert kept is not None
    assert kept.is_compiled
    assert kept.at_start, kept.remarks


def names_its_cases_first() -> None:
    """The illness by its name, the healthy twin by nothing at all."""
    kit = KerasKit()
    cases = {case.name: case for case in cases_of(kit)}
    for name in CASES:
        for variant, found in (("sick", [name]), ("healthy", [])):
            keras.utils.set_random_seed(0)
            report = diagnosed(cases[name], kit, variant)
            assert [c.finding.name for c in report.culprits][:1] == found, report.to_text()
            assert variant == "sick" or name in report.clear, report.not_examined.get(name)


def stops_before_bad_weights_are_written() -> None:
    made = model()
    good, steps = X.copy(), 4
    good[32 * steps :] = np.nan
    seen: list[list[np.ndarray]] = []

    class Kept(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None) -> None:
            self.model.jax_state_sync()
            seen.append([np.array(w) for w in self.model.get_weights()])

    watch = sleuth.keras.Watch(directory=None, quiet=True, on_error="stop")
    try:
        made.fit(good, Y, batch_size=32, shuffle=False, verbose=0, callbacks=[Kept(), watch])
    except sleuth.Stopped:
        pass
    else:
        raise AssertionError("it went on")
    assert len(seen) == steps
    assert all(np.array_equal(a, b) for a, b in zip(seen[-1], made.get_weights(), strict=True))


def judges_losses_of_probabilities_like_any_other() -> None:
    for outputs, labels, found in ((9, Y, ["target-out-of-range"]), (9, Y[:, None], ["target-out-of-range"]), (10, Y, [])):
        made = keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(outputs, activation="softmax")])
        made.compile("adam", "sparse_categorical_crossentropy")
        with sleuth.watch(made, directory=None) as watch:
            made.fit(X, labels, epochs=1, batch_size=32, verbose=0)
        report = watch.report()
        assert [f.name for f in report.findings if f.name == "target-out-of-range"] == found
        assert "class-imbalance" in report.clear


class Careless(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.drop, self.head = layers.Dense(16), layers.Dropout(0.4), layers.Dense(10)

    def call(self, rows, training=None):
        return self.head(self.drop(self.hidden(rows), training=training))

    def test_step(self, state, data):
        trainable, others, metrics = state
        scores, others = self.stateless_call(trainable, others, data[0], training=True)  # here
        return {"loss": self.compute_loss(*data, scores)}, (trainable, others, metrics)


def depth(function: Any) -> int:
    """How many listen to it."""
    return 1 + depth(function.plain) if isinstance(function, Around) else 0


class Counted(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[int] = []

    def on_epoch_end(self, epoch, logs=None) -> None:
        self.listeners.append(depth(self.model.test_function))


def hears_what_a_validation_asks() -> None:
    for kind, found in ((Careless, ["validating-in-train-mode"]), (model, [])):
        made = kind()
        made.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        count = Counted()
        with sleuth.watch(made, directory=None) as watch:
            made.fit(X, Y, epochs=3, batch_size=32, verbose=0, validation_data=(X[:128], Y[:128]), callbacks=[count])
        assert len(set(count.listeners)) == 1
        assert count.listeners[0] > 0
        assert depth(made.test_function) == 0
        told = [f for f in watch.report().findings if f.name == "validating-in-train-mode"]
        assert [f.name for f in told] == found
        assert all(f.location is not None and "# here" in f.location.text for f in told)


def keeps_every_rule() -> None:
    keeps_the_rules(None)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
        print(name)
