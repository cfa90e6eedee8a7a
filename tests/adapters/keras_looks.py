"""What can be looked at in a Keras model, against NumPy by hand. Each runs on the torch backend in test_keras_looks.py and on jax
in a process of its own, by test_keras_on_jax.py."""

import io

import keras
import numpy as np
from keras import layers
from sklearn import datasets

import sleuth
from sleuth import Subject
from sleuth.adapters.keras import ADAPTER
from sleuth.adapters.keras.backend import values
from sleuth.core.subject import Parts

X, Y = datasets.load_digits(return_X_y=True)
IMAGES, Y = (X / 16).astype(np.float32).reshape(-1, 8, 8, 1)[:16], Y[:16].astype(np.int64)


def cnn() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu", name="first"),
            layers.BatchNormalization(name="norm"),
            layers.Conv2D(6, 3, padding="same", name="second"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10, name="head"),
        ]
    )


def mlp() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Flatten(),
            layers.Dense(12, activation="relu", name="hidden"),
            layers.Dense(10, name="head"),
        ]
    )


def subject(model: keras.Model) -> Subject:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Subject(model, [(IMAGES, Y)], loss, keras.optimizers.Adam(1e-2))


class Untouched:
    """The model, its names and all random states are to the last bit as they were."""

    def __init__(self, model: keras.Model) -> None:
        self.model = model
        self.before = [np.array(w) for w in model.get_weights()]
        self.random = np.random.get_state()[1].copy()
        self.call = keras.layers.Layer.__call__

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        assert all(np.array_equal(a, b) for a, b in zip(self.before, self.model.get_weights(), strict=True))
        assert np.array_equal(self.random, np.random.get_state()[1])
        assert keras.layers.Layer.__call__ is self.call


def convolved(image: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """(height, width, in) by (3, 3, in, out), valid."""
    height, width = image.shape[0] - 2, image.shape[1] - 2
    return np.array([[np.tensordot(image[i : i + 3, j : j + 3], kernel, 3) + bias for j in range(width)] for i in range(height)])


def a_summary_counts_what_keras_counts() -> None:
    model = cnn()
    with Untouched(model):
        found = sleuth.summary(model, IMAGES[:2])
        parts = ADAPTER.parts(model)
    assert sum(p.count for p in parts) == model.count_params()
    assert sum(p.trainable for p in parts) == sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    text = io.StringIO()
    model.summary(print_fn=lambda line, **_: text.write(line))
    assert f"{model.count_params()}" in text.getvalue().replace(",", "")
    assert "second" in str(found)


def operations_are_counted_by_hand() -> None:
    model = cnn()
    with Untouched(model):
        passage = ADAPTER.passage(model, IMAGES[:2])
    flops = {v.path: v.flops for v in passage.visits}
    assert flops["first"] == 2 * 2 * 6 * 6 * 4 * 9
    assert flops["second"] == 2 * 2 * 6 * 6 * 6 * 9 * 4
    assert flops["head"] == 2 * 2 * 6 * 10
    assert flops[""] == sum(flops[path] for path in ("first", "second", "head"))


def filters_and_maps_have_the_channels_in_front() -> None:
    model = cnn()
    with Untouched(model):
        kernels = ADAPTER.kernels(model, "second")
        (maps,) = ADAPTER.maps(model, IMAGES[:1], ["first"])
    kernel, bias = (np.array(values(v)) for v in model.get_layer("first").weights)
    assert np.array_equal(kernels.values, np.array(values(model.get_layer("second").kernel)).transpose(3, 2, 0, 1))
    by_hand = np.maximum(convolved(IMAGES[0], kernel, bias), 0).transpose(2, 0, 1)
    assert np.allclose(maps.values[0], by_hand, atol=1e-5)


def grad_cam_is_what_numpy_computes() -> None:
    """After the second convolution come a mean over places and a linear layer: the gradient is known."""
    model = cnn()
    with Untouched(model):
        found = ADAPTER.class_activation(model, IMAGES[:3], "second", 7)
        (maps,) = ADAPTER.maps(model, IMAGES[:3], ["second"])
    slope = np.array(values(model.get_layer("head").kernel))[:, 7] / 36
    by_hand = np.maximum((maps.values * slope[None, :, None, None]).sum(1), 0)
    assert np.allclose(found.maps, by_hand, atol=1e-6)
    assert found.enlarged.shape == (3, 8, 8)
    assert np.allclose(found.scores, np.array(values(model(IMAGES[:3])))[:, 7], atol=1e-5)


def values_and_gradients_inside_are_overheard() -> None:
    model = mlp()
    heard: dict[str, np.ndarray] = {}
    slopes: dict[str, np.ndarray] = {}
    with (
        Untouched(model),
        ADAPTER.bench(subject(model)) as bench,
        ADAPTER.layer_values(
            bench,
            lambda path, whole: whole,
            lambda at, array: heard.update({at.path: np.array(values(array))}),
            lambda at, array: slopes.update({at.path: np.array(values(array))}),
        ),
    ):
        bench.gradients(Parts(IMAGES, Y, (IMAGES, Y)))
    kernel, bias = (np.array(values(v)) for v in model.get_layer("hidden").weights)
    hidden = np.maximum(IMAGES.reshape(16, -1) @ kernel + bias, 0)
    assert np.allclose(heard["hidden"], hidden, atol=1e-5)
    kernel, bias = (np.array(values(v)) for v in model.get_layer("head").weights)
    scores = hidden @ kernel + bias
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    by_hand = (shares - np.eye(10)[Y]) / 16
    assert np.allclose(slopes["head"], by_hand, atol=1e-6)
    assert np.allclose(slopes["hidden"], by_hand @ kernel.T, atol=1e-6)


def attention_is_a_softmax_of_products() -> None:
    keras.utils.set_random_seed(3)
    sequence = keras.Input((5, 8))
    model = keras.Model(sequence, layers.MultiHeadAttention(2, 4, name="attend")(sequence, sequence, use_causal_mask=True))
    given = np.random.default_rng(0).normal(size=(3, 5, 8)).astype(np.float32)
    with Untouched(model):
        (found,) = ADAPTER.attention(model, given)
    query, key = (
        np.array(values(v)) for v in (model.get_layer("attend")._query_dense.kernel, model.get_layer("attend")._key_dense.kernel)
    )
    scores = np.einsum("bqhd,bkhd->bhqk", np.einsum("btf,fhd->bthd", given, query), np.einsum("btf,fhd->bthd", given, key)) / 2
    scores = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    by_hand = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert np.allclose(found.weights, by_hand, atol=1e-5)


def what_is_kept_beside_the_weights_is_lent() -> None:
    model = cnn()
    with Untouched(model), ADAPTER.bench(subject(model)) as bench:
        lent, optimiser = ADAPTER.model_and_optimiser(bench)
        assert lent is not model
        assert type(optimiser).__name__ == "Adam"
        assert set(ADAPTER.statistics(bench)) == {"norm.moving_mean", "norm.moving_variance"}
        ADAPTER.write_statistic(bench, "norm.moving_mean", np.full(4, 2.0))
        assert np.array_equal(values(lent.get_layer("norm").moving_mean), np.full(4, 2.0, np.float32))


def the_cost_of_a_step_is_told() -> None:
    model = mlp()
    with Untouched(model), ADAPTER.bench(subject(model)) as bench:
        batches = iter([Parts(IMAGES, Y, (IMAGES, Y))] * 6)
        cost = ADAPTER.cost(bench, batches, steps=3, warm_up=2, tell=lambda text: None)
    assert len(cost.steps) == 3
    assert all(step.forward > 0 and step.optimiser > 0 for step in cost.steps)
    assert cost.memory.parameters == 4 * model.count_params()
    assert cost.memory.batch == IMAGES.nbytes + Y.nbytes


class Halves(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        return IMAGES[number * 6 : (number + 1) * 6], Y[number * 6 : (number + 1) * 6]


def samples_of_a_data_set_are_read_by_position() -> None:
    rows = ADAPTER.rows(Halves())
    assert rows is not None
    assert rows.count == 16
    x, y = rows.take(np.array([15, 0, 7]))
    assert np.array_equal(x, IMAGES[[15, 0, 7]])
    assert np.array_equal(y, Y[[15, 0, 7]])


def a_graph_leads_from_the_input_to_the_output() -> None:
    model = cnn()
    with Untouched(model):
        route = ADAPTER.route(model, IMAGES[:2])
    names = [node.name for node in route.nodes]
    assert names[0] == "input"
    assert "Conv2D" in names
    reached, todo = set(), list(route.outputs)
    while todo:
        place = todo.pop()
        reached.add(place)
        todo += [s for s in route.nodes[place].sources if s not in reached]
    assert 0 in reached
    assert route.passage.visits[route.nodes[names.index("Conv2D")].visit].path == "first"


LOOKS = [
    a_summary_counts_what_keras_counts,
    operations_are_counted_by_hand,
    filters_and_maps_have_the_channels_in_front,
    grad_cam_is_what_numpy_computes,
    values_and_gradients_inside_are_overheard,
    attention_is_a_softmax_of_products,
    what_is_kept_beside_the_weights_is_lent,
    the_cost_of_a_step_is_told,
    samples_of_a_data_set_are_read_by_position,
    a_graph_leads_from_the_input_to_the_output,
]
