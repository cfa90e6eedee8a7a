"""What instruments see of a model in MLX, against NumPy by hand."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten

import sleuth
from sleuth.adapters.mlx import ADAPTER
from sleuth.adapters.mlx.state import random_key
from sleuth.core.contract.workload import Heard
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Parts, Subject


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.drop, self.head = nn.Conv2d(2, 3, 3), nn.BatchNorm(3), nn.Dropout(0.5), nn.Linear(3, 4)

    def __call__(self, x: mx.array) -> mx.array:
        return self.head(self.drop(self.norm(self.conv(x))).mean((1, 2)))


@pytest.fixture
def model() -> nn.Module:
    return Small()


@pytest.fixture
def images() -> mx.array:
    return mx.array(np.random.default_rng(0).normal(size=(5, 6, 6, 2)).astype(np.float32))


@pytest.fixture
def shared() -> nn.Module:
    return nn.Linear(3, 3)


@pytest.fixture
def layers() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))


@pytest.fixture(autouse=True)
def nothing_is_changed(model: nn.Module, shared: nn.Module, layers: nn.Module):
    """Whatever is looked at: weights, modes, classes and dice are as they were, to the last bit."""
    before = {name: np.array(array) for name, array in tree_flatten(model.parameters())}
    calls, key = (Small.__call__, nn.Conv2d.__call__, mx.add, mx.array.__add__), random_key()
    yield
    after = {name: np.array(array) for name, array in tree_flatten(model.parameters())}
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert (Small.__call__, nn.Conv2d.__call__, mx.add, mx.array.__add__) == calls
    assert random_key() == key
    assert model.training


def convolved(model: Small, images: mx.array) -> np.ndarray:
    """(samples, height, width, channels), by hand."""
    x, w, b = np.array(images, np.float64), np.array(model.conv.weight, np.float64), np.array(model.conv.bias, np.float64)
    size = x.shape[1] - 2
    patches = np.stack([x[:, i : i + size, j : j + size] for i in range(3) for j in range(3)], axis=3)
    return np.einsum("nhwpc,opc->nhwo", patches, w.reshape(w.shape[0], 9, -1)) + b


def test_a_summary_counts_parameters_and_operations(model: nn.Module, images: mx.array) -> None:
    parts = {part.path: part for part in ADAPTER.parts(model)}
    assert {path: part.count for path, part in parts.items()} == {"": 0, "conv": 57, "norm": 6, "drop": 0, "head": 16}
    visits = {visit.path: visit for visit in ADAPTER.passage(model, images).visits}
    conv, head = 2 * 5 * 4 * 4 * 3 * (3 * 3 * 2), 2 * 5 * 3 * 4
    assert (visits["conv"].flops, visits["head"].flops, visits[""].flops) == (conv, head, conv + head)
    assert visits["conv"].outputs[0].shape == (5, 4, 4, 3)
    assert "79 parameters: 79 trainable" in str(sleuth.summary(model, images))


def test_what_fails_is_told_with_its_layer(model: nn.Module) -> None:
    failed = ADAPTER.passage(model, mx.zeros((1, 6, 6, 5)))
    assert failed.failure is not None
    assert failed.failure.layer == "conv"
    assert [visit.finished for visit in failed.visits] == [False, False]
    with pytest.raises(UnusableInput, match="2 channels on the last axis"):
        sleuth.feature_maps(model, mx.zeros((1, 6, 6, 5)))


def test_a_pass_as_it_is_throws_the_dice_and_puts_them_back(model: nn.Module, images: mx.array) -> None:
    passed = ADAPTER.passage(model, images, as_is=True)
    assert passed.failure is None
    assert len(passed.visits) == 5


def test_a_layer_in_two_places_is_counted_once(shared: nn.Module) -> None:
    found = ADAPTER.parts(nn.Sequential(shared, nn.ReLU(), shared))
    assert [part.count for part in found] == [0, 12, 0, 0]
    assert found[-1].same_as == "layers.0"


def test_filters_and_maps_have_their_channels_second(model: nn.Module, images: mx.array) -> None:
    kernels = ADAPTER.kernels(model, None).values
    assert kernels.shape == (3, 2, 3, 3)
    assert kernels[2, 1, 0, 2] == float(model.conv.weight[2, 0, 2, 1].item())
    (found,) = ADAPTER.maps(model, images, ())
    assert found.values.shape == (5, 3, 4, 4)
    np.testing.assert_allclose(found.values, np.moveaxis(convolved(model, images), -1, 1), atol=1e-5)


def test_grad_cam_is_the_weighted_sum_of_maps(model: nn.Module, images: mx.array) -> None:
    found = ADAPTER.class_activation(model, images, "conv", [0, 1, 2, 3, 0])
    # In evaluation mode the norm divides by the root of 1 + eps, and the mean makes every place count for a sixteenth.
    head = np.array(model.head.weight, np.float64)[[0, 1, 2, 3, 0]]
    weights = head / np.sqrt(1 + model.norm.eps) / 16
    expected = np.maximum(np.einsum("nhwc,nc->nhw", convolved(model, images), weights), 0)
    np.testing.assert_allclose(found.maps, expected, atol=1e-6)
    assert found.enlarged.shape == (5, 6, 6)
    assert found.image.shape == (5, 2, 6, 6)
    np.testing.assert_allclose(found.enlarged[:, 0, 0], expected[:, 0, 0], atol=1e-6)


def test_a_route_tells_what_feeds_what(model: nn.Module, images: mx.array) -> None:
    found = ADAPTER.route(model, images)
    assert [node.name for node in found.nodes] == ["input", "Conv2d", "BatchNorm", "Dropout", "mean", "Linear"]
    assert [node.sources for node in found.nodes] == [(), (0,), (1,), (2,), (3,), (4,)]
    assert [found.passage.visits[node.visit].path for node in found.nodes] == ["", "conv", "norm", "drop", "", "head"]
    assert found.outputs == (5,)


def test_values_and_gradients_inside_are_overheard(layers: nn.Module) -> None:
    x, y = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32), np.ones((6, 1), np.float32)
    subject = Subject(layers, [(mx.array(x), mx.array(y))], lambda o, t: mx.square(o - t).mean(), optim.SGD(0.1))
    values: dict[str, np.ndarray] = {}
    gradients: dict[str, np.ndarray] = {}

    def heard(into: dict[str, np.ndarray]):
        def hear(what: Heard, array: mx.array) -> None:
            into[what.path] = np.array(array)

        return hear

    with ADAPTER.bench(subject) as bench:
        batch = Parts(mx.array(x), mx.array(y), (mx.array(x), mx.array(y)))
        plain = {path: np.array(g) for path, g in bench.gradients(batch).by_path.items()}
        with ADAPTER.layer_values(bench, lambda path, plain: plain, heard(values), heard(gradients)):
            listened = {path: np.array(g) for path, g in bench.gradients(batch).by_path.items()}
    hidden = x @ np.array(layers.layers[0].weight).T + np.array(layers.layers[0].bias)
    output = hidden @ np.array(layers.layers[1].weight).T + np.array(layers.layers[1].bias)
    np.testing.assert_allclose(values["layers.0"], hidden, atol=1e-6)
    np.testing.assert_allclose(gradients["layers.1"], 2 * (output - y) / 6, atol=1e-6)
    np.testing.assert_allclose(gradients["layers.0"], 2 * (output - y) / 6 @ np.array(layers.layers[1].weight), atol=1e-6)
    assert all(np.array_equal(plain[path], listened[path]) for path in plain)


def test_a_bench_lends_running_statistics(model: nn.Module, images: mx.array) -> None:
    subject = Subject(model, [(images, mx.zeros(5, mx.int32))], nn.losses.cross_entropy, optim.Adam(1e-3))
    with ADAPTER.bench(subject) as bench:
        lent, optimiser = ADAPTER.model_and_optimiser(bench)
        assert lent is not model
        assert isinstance(optimiser, optim.Adam)
        assert set(ADAPTER.statistics(bench)) == {"norm.running_mean", "norm.running_var"}
        ADAPTER.write_statistic(bench, "norm.running_mean", np.array([1.0, 2.0, 3.0]))
        assert np.array(lent.norm.running_mean).tolist() == [1.0, 2.0, 3.0]


def test_a_profile_tells_phases_layers_and_memory(model: nn.Module, images: mx.array) -> None:
    data = [(images, mx.array([0, 1, 2, 3, 0]))] * 4
    subject = Subject(model, data, lambda o, t: nn.losses.cross_entropy(o, t, reduction="mean"), optim.Adam(1e-3))
    with ADAPTER.bench(subject) as bench:
        batches = iter([Parts(x, y, (x, y)) for x, y in data])
        cost = ADAPTER.cost(bench, batches, steps=3, warm_up=1, tell=lambda text: None)
    assert len(cost.steps) == 3
    assert all(step.forward > 0 and step.optimiser > 0 for step in cost.steps)
    assert [layer.path for layer in cost.layers] == ["", "conv", "norm", "drop", "head"]
    assert {layer.path: layer.flops for layer in cost.layers if layer.flops} == {"conv": 8640, "head": 120}
    assert (cost.memory.parameters, cost.memory.buffers, cost.memory.gradients) == (79 * 4, 6 * 4, 79 * 4)
    assert cost.memory.optimiser >= 2 * 79 * 4


def test_a_model_of_mlx_keeps_no_gradients(model: nn.Module) -> None:
    with pytest.raises(UnusableInput, match="keeps no gradients"):
        sleuth.gradients(model)


def test_arrays_of_mlx_are_data_as_they_are(images: mx.array, model: nn.Module) -> None:
    assert "5 samples" in str(sleuth.show_batch((images, mx.array([0, 1, 2, 3, 0]))))
    assert "conv" in str(sleuth.activations(model, images))
