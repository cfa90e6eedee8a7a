"""Looking into models of JAX: shapes, operations, maps, values and gradients inside are those of a computation by hand."""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from numpy.lib.stride_tricks import sliding_window_view

import sleuth
from sleuth.adapters.jax import ADAPTER
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.subject import Subject, take_apart
from tests.material import digits

X, Y = (part[:6] for part in digits())
IMAGES = X.reshape(-1, 8, 8, 1)


class Small(nnx.Module):
    """A convolution, the mean of its maps, and a linear layer."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(1, 3, (3, 3), padding="VALID", rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.head = nnx.Linear(3, 10, rngs=rngs)

    def __call__(self, x):
        return self.head(self.drop(nnx.relu(self.conv(x)).mean((1, 2))))


class Sampled(eqx.Module):
    conv: eqx.nn.Conv2d
    head: eqx.nn.Linear

    def __init__(self) -> None:
        one, two = jax.random.split(jax.random.key(0))
        self.conv, self.head = eqx.nn.Conv2d(1, 3, 3, key=one), eqx.nn.Linear(3, 10, key=two)

    def __call__(self, x):
        return self.head(jax.nn.relu(self.conv(x)).mean((1, 2)))


def cross_entropy(scores, labels):
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def arrays(tree: Any) -> list[np.ndarray]:
    leaves = jax.tree.leaves(nnx.state(tree) if isinstance(tree, nnx.Module) else eqx.filter(tree, eqx.is_array))
    return [np.asarray(jax.random.key_data(a) if jnp.issubdtype(a.dtype, jax.dtypes.prng_key) else a).copy() for a in leaves]


@pytest.fixture(params=["flax", "equinox"])
def small(request):
    """(model, inputs as it takes them, kernel as (out, in, *kernel), its bias, weights of the head as (in, out), their bias)."""
    if request.param == "flax":
        model, inputs = Small(nnx.Rngs(0)), IMAGES
        kernel = np.asarray(model.conv.kernel[...]).transpose(3, 2, 0, 1)
        made = model, inputs, kernel, model.conv.bias[...], model.head.kernel[...], model.head.bias[...]
    else:
        model, inputs = Sampled(), IMAGES.transpose(0, 3, 1, 2)
        made = model, inputs, model.conv.weight, model.conv.bias.reshape(-1), model.head.weight.T, model.head.bias
    before, state = arrays(model), np.random.get_state()[1].copy()
    yield (made[0], made[1], *(np.asarray(part, np.float64) for part in made[2:]))
    assert all(np.array_equal(a, b) for a, b in zip(before, arrays(model), strict=True))
    assert np.array_equal(state, np.random.get_state()[1])


def convolved(kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """(samples, channels, height, width), by hand."""
    windows = sliding_window_view(IMAGES[..., 0].astype(np.float64), (3, 3), axis=(1, 2))
    return np.einsum("nhwij,oij->nohw", windows, kernel[:, 0]) + bias[:, None, None]


def test_a_summary_has_shapes_and_operations_of_every_layer(small) -> None:
    model, inputs, *_ = small
    passage = ADAPTER.passage(model, inputs)
    shapes = {v.path: (v.inputs[0].shape, v.outputs[0].shape) for v in passage.visits}
    maps = (6, 6, 6, 3) if isinstance(model, nnx.Module) else (6, 3, 6, 6)
    assert shapes["conv"] == (inputs.shape, maps)
    assert shapes[""] == (inputs.shape, (6, 10))
    flops = {v.path: v.flops for v in passage.visits}
    assert (flops["conv"], flops["head"]) == (2 * 6 * 36 * 3 * 9, 2 * 6 * 3 * 10)
    assert flops[""] == flops["conv"] + flops["head"]
    assert [v.parent for v in passage.visits] == [None] + [0] * (len(passage.visits) - 1)
    assert {p.path: p.count for p in ADAPTER.parts(model)}["conv"] == 30
    assert "33,0" not in str(sleuth.summary(model, inputs))


def test_a_tree_of_parameters_is_told_by_what_holds_arrays() -> None:
    params = {"one": {"w": jnp.ones((64, 8)), "b": jnp.zeros(8)}, "two": {"w": jnp.ones((8, 10))}}
    model = (lambda p, x: jax.nn.relu(x @ p["one"]["w"] + p["one"]["b"]) @ p["two"]["w"], params)
    assert {p.path: (p.family, p.count) for p in ADAPTER.parts(model)} == {
        "": ("container", 0), "one": ("linear", 520), "two": ("linear", 80),
    }  # fmt: skip
    (visit,) = ADAPTER.passage(model, X).visits
    assert (visit.outputs[0].shape, visit.flops) == ((6, 10), 2 * 6 * (64 * 8 + 8 * 10))
    with pytest.raises(UnusableInput, match="give \\(apply, params\\)"):
        ADAPTER.passage(params, X)


def test_a_layer_at_two_places_is_counted_once() -> None:
    shared = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    found = ADAPTER.parts(nnx.Sequential(shared, nnx.relu, shared))
    assert [(p.path, p.count, p.same_as) for p in found if p.path] == [("layers.0", 20, None), ("layers.2", 0, "layers.0")]


def test_a_pass_that_fails_says_in_which_layer() -> None:
    passage = ADAPTER.passage(Small(nnx.Rngs(0)), IMAGES.repeat(2, axis=3))
    assert passage.failure is not None
    assert passage.failure.layer == "conv"
    assert [(v.path, v.finished) for v in passage.visits] == [("", False), ("conv", False)]


def test_filters_and_maps_have_the_channels_in_front(small) -> None:
    model, inputs, kernel, bias, *_ = small
    np.testing.assert_array_equal(ADAPTER.kernels(model, None).values, kernel.astype(np.float32))
    (maps,) = ADAPTER.maps(model, inputs, ())
    np.testing.assert_allclose(maps.values, convolved(kernel, bias), atol=1e-5)


def test_grad_cam_is_that_of_a_computation_by_hand(small) -> None:
    model, inputs, kernel, bias, weights, shift = small
    maps = convolved(kernel, bias)
    scores = np.maximum(maps, 0).mean((2, 3)) @ weights + shift
    targets = scores.argmax(1)
    # The slope of a score by a map: the weight, where ReLU lets it pass, a 36th of it at each place.
    slopes = weights.T[targets][:, :, None, None] * (maps > 0) / 36
    expected = np.maximum((slopes.mean((2, 3), keepdims=True) * maps).sum(1), 0)
    found = ADAPTER.class_activation(model, inputs, None, None)
    assert found.targets == tuple(targets)
    np.testing.assert_allclose(found.scores, scores.max(1), atol=1e-5)
    np.testing.assert_allclose(found.maps, expected, atol=1e-6)
    np.testing.assert_array_equal(found.image, IMAGES.transpose(0, 3, 1, 2))
    assert found.enlarged.shape == (6, 8, 8)


def test_the_graph_leads_from_the_input_to_the_output(small) -> None:
    model, inputs, *_ = small
    route = ADAPTER.route(model, inputs)
    names = [node.family for node in route.nodes]
    assert names[0] == "input"
    assert [f for f in names if f in ("conv", "activation", "linear")] == ["conv", "activation", "linear"]
    assert route.passage.visits[route.nodes[names.index("conv")].visit].path == "conv"
    assert route.nodes[route.outputs[0]].shape == (6, 10)


def test_values_and_gradients_inside_are_those_of_a_computation_by_hand(small) -> None:
    model, inputs, kernel, bias, weights, shift = small
    if isinstance(model, nnx.Module):
        model.eval()
    values: dict[str, np.ndarray] = {}
    gradients: dict[str, np.ndarray] = {}
    axes: dict[str, int] = {}

    def hear(heard, array) -> None:
        values[heard.path], axes[heard.path] = np.asarray(array), heard.unit_axis

    with ADAPTER.bench(Subject(model, (inputs, Y), cross_entropy)) as bench:
        bench.set_training(False)
        batch = take_apart((inputs, Y))
        plain = bench.gradients(batch)
        with ADAPTER.layer_values(bench, lambda path, usual: usual, hear, lambda h, a: gradients.update({h.path: np.asarray(a)})):
            again = bench.gradients(batch)
        assert plain.loss == again.loss
    if isinstance(model, nnx.Module):
        model.train()
    maps = convolved(kernel, bias)
    scores = np.maximum(maps, 0).mean((2, 3)) @ weights + shift
    shares = np.exp(scores - scores.max(1, keepdims=True))
    by_scores = (shares / shares.sum(1, keepdims=True) - np.eye(10)[Y]) / 6
    by_relu = (by_scores @ weights.T)[:, :, None, None] / 36 * np.ones_like(maps)
    np.testing.assert_allclose(values["head"], scores, atol=1e-5)
    np.testing.assert_allclose(np.moveaxis(values["relu"], axes["relu"], 1), np.maximum(maps, 0), atol=1e-5)
    np.testing.assert_allclose(gradients["head"], by_scores, atol=1e-6)
    np.testing.assert_allclose(np.moveaxis(gradients["relu"], axes["relu"], 1), by_relu, atol=1e-6)
    np.testing.assert_allclose(np.moveaxis(gradients["conv"], axes["conv"], 1), by_relu * (maps > 0), atol=1e-6)


def test_what_was_lent_and_changed_is_what_the_bench_goes_on_with() -> None:
    model = Small(nnx.Rngs(0))
    optimiser = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    with ADAPTER.bench(Subject(model, (IMAGES, Y), cross_entropy, optimiser)) as bench:
        bench.step(take_apart((IMAGES, Y)))
        lent, its = ADAPTER.model_and_optimiser(bench)
        assert lent is not model
        np.testing.assert_array_equal(lent.head.bias[...], bench.parameter("head.bias"))
        lent, its = ADAPTER.model_and_optimiser(bench)
        lent.head.bias[...] = jnp.full(10, 7.0)
        np.testing.assert_array_equal(bench.parameter("head.bias"), np.full(10, 7.0))
        lent, its = ADAPTER.model_and_optimiser(bench)
        assert int(its.opt_state[0].count[...]) == 1
    assert not np.any(np.asarray(model.head.bias[...]))


def test_values_cannot_be_lent() -> None:
    with ADAPTER.bench(Subject(Sampled(), (IMAGES.transpose(0, 3, 1, 2), Y), cross_entropy, optax.adam(1e-3))) as bench:
        with pytest.raises(Unsupported, match="are values"):
            ADAPTER.model_and_optimiser(bench)
        assert ADAPTER.statistics(bench) == {}


def test_gradients_that_nobody_keeps_are_asked_for_with_data() -> None:
    with pytest.raises(UnusableInput, match="keeps no gradients in a model"):
        sleuth.gradients(Small(nnx.Rngs(0)))


def test_a_profile_tells_phases_layers_and_memory_and_that_they_were_compiled_apart(small) -> None:
    model, inputs, *_ = small
    found = sleuth.profile(model, [(inputs, Y)] * 3, loss=cross_entropy, optimizer=optax.adam(1e-3), steps=3)
    assert len(found.steps) == 3
    assert all(min(step.forward, step.optimiser, step.data) > 0 for step in found.steps)
    assert found.fused is not None
    assert found.fused > 0
    assert "as one program it takes" in str(found)
    assert any("compiled apart" in note for note in found.notes)
    flops = {layer.path: layer.flops for layer in found.layers if layer.flops}
    assert flops == {"conv": 2 * 6 * 36 * 3 * 9, "head": 2 * 6 * 3 * 10}
    assert sum(found.share_of(layer) for layer in found.layers) == pytest.approx(1)
    size = 4 * (27 + 3 + 30 + 10)
    memory = found.memory
    assert (memory.parameters, memory.gradients, memory.optimiser, memory.batch) == (size, size, 2 * size + 4, inputs.nbytes + 24)
    maps = 4 * 6 * 3 * 36
    # What ReLU and the layer behind it need for their derivatives is kept, and not ten times as much.
    assert maps / 4 <= memory.activations <= 10 * maps
    assert memory.peak is not None
    assert memory.peak >= 2 * (3 * size) + inputs.nbytes


def test_the_slow_layer_of_a_profile_stands_first_and_takes_its_time() -> None:
    class Nap(nnx.Module):
        def __call__(self, x):
            def nap(row):
                time.sleep(0.02)
                return row

            return x + jax.pure_callback(nap, jax.ShapeDtypeStruct(x.shape, x.dtype), jax.lax.stop_gradient(x))

    model = nnx.Sequential(nnx.Linear(64, 8, rngs=nnx.Rngs(0)), Nap(), nnx.Linear(8, 10, rngs=nnx.Rngs(0)))
    found = sleuth.profile(model, [(X, Y)], loss=cross_entropy, steps=2)
    assert found.slowest[0].path == "layers.1"
    assert 0.02 <= found.slowest[0].forward < 0.1
    assert found.shares["forward"] > 0.3


def test_a_layer_calls_once_a_round_what_it_does_in_a_loop() -> None:
    class Rows(nnx.Module):
        def __call__(self, x):
            return jax.lax.map(lambda row: jnp.tanh(row) * 2, x)

    model = nnx.Sequential(nnx.Linear(64, 10, rngs=nnx.Rngs(0)), Rows())
    counted = {}
    with ADAPTER.bench(Subject(model, (X, Y), cross_entropy)) as bench:
        for samples in (3, 6):
            work = ADAPTER.work(bench, take_apart((X[:samples], Y[:samples])), 0)
            counted[samples] = {w.path: w.operations for w in work}
            assert not any(w.forward for w in work)
    assert counted[6]["layers.1"] - counted[3]["layers.1"] == 3 * 2
    assert counted[6]["layers.0"] == counted[3]["layers.0"]
