"""Instruments on hand-written layers: numbers equal what NumPy says by hand, and the network stays as it was to the bit."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sleuth
from sleuth.adapters.numpy import ADAPTER
from sleuth.core.subject import Subject, take_apart
from tests.kits import numpy_layers as by_hand
from tests.kits.numpy_kit import NumpyKit
from tests.material import digits

KIT = NumpyKit()
IMAGES, LABELS = digits()[0].reshape(-1, 1, 8, 8)[:12], digits()[1][:12]


class Conv2D:
    """Channels last; the kernel is (height, width, in, out)."""

    def __init__(self) -> None:
        self.kernel = np.random.default_rng(0).normal(size=(3, 3, 1, 4))
        self.bias = np.zeros(4)

    def parameters(self) -> list[np.ndarray]:
        return [self.kernel, self.bias]

    def forward(self, x: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
        return np.einsum("nhwcij,ijco->nhwo", windows, self.kernel) + self.bias


class LastNet:
    def __init__(self) -> None:
        self.conv = Conv2D()

    def parameters(self) -> list[np.ndarray]:
        return self.conv.parameters()

    def forward(self, x: np.ndarray) -> np.ndarray:
        return self.conv.forward(x)


@pytest.fixture
def net() -> by_hand.Sequential:
    np.random.seed(0)
    return KIT.sequential(
        KIT.layer("conv2d", 1, 4, 3), KIT.activation("relu"), KIT.layer("max_pool", 2), KIT.layer("flatten"), KIT.linear(36, 10)
    )


def state(net: by_hand.Sequential) -> list[Any]:
    return [(key, value.tobytes() if isinstance(value, np.ndarray) else str(value)) for layer in (net, *net.layers)
            for key, value in sorted(vars(layer).items()) if key not in ("layers", "gradients")]  # fmt: skip


@pytest.mark.parametrize(
    "look",
    [
        lambda net: sleuth.summary(net, IMAGES),
        lambda net: sleuth.trace(net, IMAGES),
        lambda net: sleuth.try_component(net, (4, 1, 8, 8)),
        lambda net: sleuth.graph(net, IMAGES),
        lambda net: sleuth.filters(net),
        lambda net: sleuth.feature_maps(net, IMAGES),
        lambda net: sleuth.gradcam(net, IMAGES),
        lambda net: sleuth.profile(net, (IMAGES, LABELS), loss=KIT.loss("cross-entropy"), optimizer=KIT.optimiser(net)),
        lambda net: sleuth.activations(net, (IMAGES, LABELS), loss=KIT.loss("cross-entropy")),
    ],
)
def test_every_look_leaves_all_as_it_was(net: by_hand.Sequential, look: Callable[[Any], Any]) -> None:
    net.forward(IMAGES)
    before, random = state(net), np.random.get_state()[1].tobytes()
    look(net)
    assert state(net) == before
    assert np.random.get_state()[1].tobytes() == random
    assert (sys.getprofile(), sys.gettrace()) == (None, None)


def test_shapes_and_operations_of_a_pass_are_those_of_its_layers(net: by_hand.Sequential) -> None:
    visits = {visit.path: visit for visit in ADAPTER.passage(net, IMAGES).visits}
    assert visits["layers.0"].outputs[0].shape == (12, 4, 6, 6)
    assert visits["layers.0"].flops == 2 * 12 * 6 * 6 * 4 * 9
    assert visits["layers.4"].flops == 2 * 12 * 36 * 10
    assert visits[""].flops == visits["layers.0"].flops + visits["layers.4"].flops
    assert {part.path: part.count for part in ADAPTER.parts(net)} == {
        "": 0, "layers.0": 40, "layers.1": 0, "layers.2": 0, "layers.3": 0, "layers.4": 370
    }  # fmt: skip


def test_a_pass_that_fails_tells_its_layer(net: by_hand.Sequential) -> None:
    went = ADAPTER.passage(net, IMAGES[:, :, :5])
    assert went.failure is not None
    assert went.failure.layer == "layers.4"
    assert not next(visit for visit in went.visits if visit.path == "layers.4").finished


def test_filters_and_maps_come_channels_first_whatever_the_layout() -> None:
    net = LastNet()
    found = ADAPTER.kernels(net, None)
    assert np.array_equal(found.values, net.conv.kernel.transpose(3, 2, 0, 1))
    images = IMAGES.transpose(0, 2, 3, 1).astype(np.float64)
    (maps,) = ADAPTER.maps(net, images, [])
    assert np.array_equal(maps.values, net.conv.forward(images).transpose(0, 3, 1, 2))


def test_class_activation_is_the_map_weighed_by_differences_of_the_score(net: by_hand.Sequential) -> None:
    for layer in net.layers:
        for name in layer.names:
            setattr(layer, name, getattr(layer, name).astype(np.float64))
    images = IMAGES[:2].astype(np.float64)
    found = ADAPTER.class_activation(net, images, "layers.0", 3)
    maps = net.layers[0].forward(images)

    def score(maps: np.ndarray) -> np.ndarray:
        for layer in net.layers[1:]:
            maps = layer.forward(maps)
        return maps[:, 3]

    weighed = np.zeros((2, 6, 6))
    for channel in range(4):
        slopes = np.zeros((2, 6, 6))
        for place in np.ndindex(6, 6):
            moved = np.zeros_like(maps)
            moved[(slice(None), channel, *place)] = 1e-6
            slopes[(slice(None), *place)] = (score(maps + moved) - score(maps - moved)) / 2e-6
        weighed += slopes.mean((1, 2), keepdims=True) * maps[:, channel]
    assert found.maps == pytest.approx(np.maximum(weighed, 0), abs=1e-6)


def test_gradients_inside_are_those_that_backward_is_given(net: by_hand.Sequential) -> None:
    loss = KIT.loss("cross-entropy")
    batch = take_apart((IMAGES, LABELS), None)
    heard: dict[str, np.ndarray] = {}

    def keep(what: Any, array: np.ndarray) -> None:
        heard[what.path] = array

    with (
        ADAPTER.bench(Subject(net, None, loss, 0.1)) as bench,
        ADAPTER.layer_values(bench, lambda path, leaf: True, lambda *_: None, keep),
    ):
        bench.gradients(batch)
    _, wanted = loss(net.forward(IMAGES), LABELS)
    assert np.array_equal(heard["layers.4"], wanted)
    assert heard["layers.3"] == pytest.approx(wanted @ net.layers[4].weight.T)


def test_a_profile_counts_what_the_arrays_take(net: by_hand.Sequential) -> None:
    subject = Subject(net, None, KIT.loss("cross-entropy"), KIT.optimiser(net, "adam"))
    with ADAPTER.bench(subject) as bench:
        batch = take_apart((IMAGES, LABELS), None)
        cost = ADAPTER.cost(bench, iter([batch] * 4), steps=3, warm_up=1, tell=lambda _: None)
    weights = sum(array.nbytes for _, array in net.parameters())
    assert cost.memory.parameters == cost.memory.gradients == weights
    assert cost.memory.optimiser == 2 * weights
    assert cost.memory.batch == IMAGES.nbytes + LABELS.nbytes
    assert len(cost.steps) == 3
    assert {layer.path for layer in cost.layers} == {"", *(f"layers.{i}" for i in range(5))}
    assert all(phase.total > 0 for phase in cost.steps)


def test_a_loop_over_samples_is_counted_sample_by_sample() -> None:
    class OneByOne(by_hand.Layer):
        def forward(self, x: np.ndarray) -> np.ndarray:
            return np.stack([row * 2 for row in x])

    net = KIT.sequential(OneByOne(), KIT.linear(4, 2))
    found = {}
    for samples in (4, 12):
        with ADAPTER.bench(Subject(net, None, KIT.loss("cross-entropy"))) as bench:
            batch = take_apart((np.ones((samples, 4), np.float32), np.zeros(samples, np.int64)), None)
            found[samples] = {w.path: w.operations for w in ADAPTER.work(bench, batch, 1)}
    assert found[12]["layers.0"] - found[4]["layers.0"] == 8
    assert found[12]["layers.1"] == found[4]["layers.1"]
