"""What is particular to Keras: compiled models, names as Keras shows them, copies that share nothing, an untouched user."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest
from keras import layers, ops

from sleuth.adapters import adapter_for
from sleuth.adapters.keras import ADAPTER
from sleuth.checks import all_checks
from sleuth.core.contract.adapter import Bench
from sleuth.core.engine import Engine
from sleuth.core.errors import Unsupported
from sleuth.core.observation import LossCall, Split
from sleuth.core.reading.batch_facts import contents, describe_batch
from sleuth.core.settings import Configuration
from sleuth.core.subject import Parts, Subject
from tests.material import digits

X, Y = digits()


def compiled(last: str | None = None, *, from_logits: bool, built: bool = True) -> keras.Model:
    first = [keras.Input((64,))] if built else []
    model = keras.Sequential([*first, layers.Dense(16, activation="relu", name="hidden"), layers.Dense(10, activation=last)])
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits))
    return model


class Residual(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = [layers.Dense(64, activation="tanh", kernel_regularizer="l2"), layers.Dropout(0.5)]
        self.head = layers.Dense(10)

    def call(self, x, training=False):
        return self.head(x + self.blocks[1](self.blocks[0](x), training=training))


def subclassed() -> keras.Model:
    model = Residual()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model(X[:2])
    return model


def batch(size: int = 32) -> Parts:
    return Parts(X[:size], Y[:size], (X[:size], Y[:size]))


def observed(model: keras.Model, **given) -> LossCall:
    with ADAPTER.bench(Subject(model, (X, Y), **given)) as bench:
        (call,) = [o for o in bench.observe(batch(), 0) if isinstance(o, LossCall)]
    return call


def weights(model: keras.Model) -> list[np.ndarray]:
    return [np.array(w) for w in model.get_weights()]


def test_a_keras_model_is_taken_by_keras_though_it_is_a_module_of_torch_too() -> None:
    assert adapter_for(compiled(from_logits=True)).name == "keras"


@pytest.mark.parametrize(
    ("last", "from_logits", "family", "producer"),
    [
        (None, True, "cross-entropy", "linear"),
        ("softmax", True, "cross-entropy", "softmax"),
        ("softmax", False, "probabilities", "softmax"),
    ],
)
def test_the_compiled_loss_is_read_with_its_from_logits(last, from_logits, family, producer) -> None:
    call = observed(compiled(last, from_logits=from_logits))
    assert (call.name, call.family) == ("SparseCategoricalCrossentropy", family)
    output = call.argument("output")
    assert output is not None
    assert output.producer == producer


@pytest.mark.parametrize(("last", "found"), [(None, ["missing-log-softmax"]), ("softmax", [])])
def test_raw_scores_for_a_loss_of_probabilities_are_named(last, found) -> None:
    engine = Engine(all_checks())
    engine.emit(observed(compiled(last, from_logits=False)))
    assert [f.name for f in engine.judge().findings if f.name in ("missing-log-softmax", "double-softmax")] == found


def test_losses_of_keras_and_functions_that_name_the_truth_first_get_the_target_first() -> None:
    def mine(y_true, y_pred):
        return ops.mean(ops.square(ops.cast(y_true, "float32")[:, None] - y_pred))

    def yours(output, target):
        return mine(target, output)

    model = keras.Sequential([keras.Input((64,)), layers.Dense(1)])
    values = [observed(model, loss=loss).value for loss in (mine, yours, "mse", keras.losses.MeanSquaredError())]
    assert values[0] is not None
    assert np.allclose(values, values[0], rtol=1e-5)


def test_layers_have_the_names_that_keras_shows() -> None:
    found = ADAPTER.architecture(Subject(subclassed(), (X, Y)))
    dense = [layer for layer in found.layers if layer.family == "linear"]
    assert [layer.settings["out"] for layer in dense] == [64, 10]
    assert [p.path for p in found.parameters] == [f"{layer.path}.{name}" for layer in dense for name in ("kernel", "bias")]
    assert dense[0].settings["activation"] == "tanh"


def test_a_model_that_is_not_built_yet_is_described_and_benched_from_its_data_and_left_unbuilt() -> None:
    model = compiled(from_logits=True, built=False)
    subject = Subject(model, (X, Y))
    paths = [p.path for p in ADAPTER.architecture(subject).parameters]
    assert len(paths) == 4
    with ADAPTER.bench(subject) as bench:
        assert list(bench.paths()) == paths
    assert not model.built
    assert not model.weights


@pytest.mark.parametrize("make", [lambda: compiled(from_logits=True), subclassed], ids=["sequential", "subclassed"])
def test_a_bench_trains_its_copy_and_leaves_the_users_objects_alone(make) -> None:
    model = make()
    model.fit(X[:64], Y[:64], verbose=0)
    before, states = weights(model), [np.array(v.value.detach()) for v in model.optimizer.variables]
    names = dict(keras.src.backend.common.global_state.get_global_attribute("object_name_uids"))
    subject = Subject(model, (X, Y))
    with ADAPTER.preserve(subject), ADAPTER.bench(subject) as bench:
        assert bench.note is None
        losses = [bench.step(batch()) for _ in range(5)]
    assert losses[-1] < losses[0]
    assert all(np.array_equal(a, b) for a, b in zip(before, weights(model), strict=True))
    assert all(np.array_equal(a, v.value.detach()) for a, v in zip(states, model.optimizer.variables, strict=True))
    assert dict(keras.src.backend.common.global_state.get_global_attribute("object_name_uids")) == names


def test_what_regularisers_add_counts_in_the_loss() -> None:
    model = subclassed()
    with ADAPTER.bench(Subject(model, (X, Y))) as bench:
        bench.set_training(False)
        plain = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(Y[:32], model(X[:32]))
        penalty = 0.01 * float((model.blocks[0].kernel.value.detach() ** 2).sum())
        assert bench.loss(batch()) == pytest.approx(float(plain.detach()) + penalty, rel=1e-4)


def test_without_a_loss_experiments_say_that_there_is_none() -> None:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(3)])
    with ADAPTER.bench(Subject(model, (X, Y))) as bench, pytest.raises(Unsupported, match="compile"):
        bench.loss(batch())


def test_a_gradient_that_is_stopped_is_found_with_its_line() -> None:
    class Cut(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = layers.Dense(8), layers.Dense(10)

        def call(self, x):
            return self.head(ops.stop_gradient(self.body(x)))

    model = Cut()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with ADAPTER.bench(Subject(model, (X, Y))) as bench:
        found = ADAPTER.connection(bench, batch())
    assert [path.rpartition(".")[2] for path in found.without_gradient] == ["kernel", "bias"]
    assert found.cuts[0].location is not None
    assert "stop_gradient" in found.cuts[0].location.text


def test_a_schedule_keeps_its_proportions_when_the_rate_is_set() -> None:
    model = compiled(from_logits=True)
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    with ADAPTER.bench(Subject(model, (X, Y), optimizer=keras.optimizers.SGD(schedule))) as bench:
        rates = [_rate_after(bench, 0.2), _rate_after(bench, None)]
    assert rates == pytest.approx([0.2, 0.1])


def _rate_after(bench: Bench, rate: float | None) -> float | None:
    if rate is None:
        bench.step(batch())
    else:
        bench.set_lr(rate)
    return bench.lr


@pytest.mark.parametrize(("order", "found"), [("channels_last", ["channels-misplaced"]), ("channels_first", [])])
def test_colours_on_the_first_axis_are_named_where_a_convolution_takes_rows_for_them(order: str, found: list[str]) -> None:
    pictures = np.stack([X, 1 - X, X**2], axis=1).reshape(-1, 3, 8, 8)[:64]
    parts = [keras.Input((3, 8, 8)), layers.Conv2D(4, 3, padding="same", data_format=order), layers.Flatten(), layers.Dense(10)]
    model = keras.Sequential(parts)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    engine = Engine(all_checks(), Configuration(select=("channels-misplaced",)))
    engine.emit(ADAPTER.architecture(Subject(model, None)))
    engine.emit(describe_batch(contents(Parts(pictures, Y[:64], None), ADAPTER), Split.TRAIN, 0, ADAPTER))
    assert [f.name for f in engine.judge().findings] == found
