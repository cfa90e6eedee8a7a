"""Models of JAX in every way that people write them: claimed, described, stepped, and left as they were."""

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import sleuth
from sleuth.adapters.jax import ADAPTER
from sleuth.core.observation import Frame, LossCall
from sleuth.core.subject import Subject, take_apart
from tests.material import digits

BATCH = tuple(part[:32] for part in digits())


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, sick: bool = False) -> None:
        self.second = nnx.Linear(32, 10, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.first = nnx.Linear(64, 32, rngs=rngs)
        self.sick = sick

    def __call__(self, x: jax.Array) -> jax.Array:
        scores = self.second(self.drop(nnx.relu(self.first(x))))
        return nnx.softmax(scores) if self.sick else scores  # softmax


class OneSample(eqx.Module):
    first: eqx.nn.Linear
    drop: eqx.nn.Dropout
    second: eqx.nn.Linear
    sick: bool

    def __init__(self, key: jax.Array, sick: bool = False) -> None:
        one, two = jax.random.split(key)
        self.first, self.second = eqx.nn.Linear(64, 32, key=one), eqx.nn.Linear(32, 10, key=two)
        self.drop = eqx.nn.Dropout(0.1)
        self.sick = sick

    def __call__(self, x: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        scores = self.second(self.drop(jax.nn.relu(self.first(x)), key=key))
        return jax.nn.softmax(scores) if self.sick else scores  # softmax


def parameters(key: jax.Array) -> dict[str, dict[str, jax.Array]]:
    one, two = jax.random.split(key)
    return {
        "first": {"w": jax.random.normal(one, (64, 32)) * 0.15, "b": jnp.zeros(32)},
        "second": {"w": jax.random.normal(two, (32, 10)) * 0.2, "b": jnp.zeros(10)},
    }


def apply(params: Any, x: Any) -> jax.Array:
    hidden = jnp.maximum(x @ params["first"]["w"] + params["first"]["b"], 0)
    return hidden @ params["second"]["w"] + params["second"]["b"]


def softmax_apply(params: Any, x: Any) -> jax.Array:
    return jax.nn.softmax(apply(params, x))  # softmax


def cross_entropy(scores: jax.Array, target: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(scores, target).mean()


def nnx_model(sick: bool = False) -> Any:
    return Net(nnx.Rngs(0), sick)


def equinox_model(sick: bool = False) -> Any:
    return OneSample(jax.random.key(0), sick)


def plain_model(sick: bool = False) -> Any:
    return (softmax_apply if sick else apply, parameters(jax.random.key(0)))


MODELS = [nnx_model, equinox_model, plain_model]


def subject(model: Any, optimiser: Any = None) -> Subject:
    return Subject(model, BATCH, cross_entropy, optimiser or optax.adam(2e-3))


@pytest.mark.parametrize("make", MODELS)
def test_each_way_of_writing_a_model_is_described_stepped_and_followed(make: Callable[[], Any]) -> None:
    given = subject(make())
    assert ADAPTER.claims(given.model)
    described = ADAPTER.architecture(given)
    assert [(x.path, x.settings["in"], x.settings["out"]) for x in _linear(described.layers)] == _expected(make)
    assert all(p.optimised for p in described.parameters)
    with ADAPTER.bench(given) as bench:
        batch = take_apart(BATCH)
        seen = list(bench.observe(batch, 0))
        (call,) = [o for o in seen if isinstance(o, LossCall)]
        assert call.family == "cross-entropy"
        frame = next(o for o in seen if isinstance(o, Frame))
        assert {"first", "relu", "second"} <= set(frame.paths)
        flow = ADAPTER.flow(bench, batch)
        assert [o.layer for o in flow.operations if o.family == "linear"] == ["first", "second"]
        assert len(flow.outputs) == 1
        start = bench.loss(batch)
        for _ in range(30):
            bench.step(batch)
        assert bench.loss(batch) < 0.8 * start


def _linear(layers: Any) -> list[Any]:
    return [layer for layer in layers if layer.family == "linear"]


def _expected(make: Callable[[], Any]) -> list[tuple[str, int, int]]:
    found = [("first", 64, 32), ("second", 32, 10)]
    return found[::-1] if make is nnx_model else found


@pytest.mark.parametrize("make", MODELS)
def test_a_softmax_before_the_loss_is_seen_with_its_line(make: Callable[[bool], Any]) -> None:
    with ADAPTER.bench(subject(make(True))) as bench:
        (call,) = [o for o in bench.observe(take_apart(BATCH), 0) if isinstance(o, LossCall)]
    output = call.argument("output")
    assert output is not None
    assert (output.producer, output.producer_axis) == ("softmax", 1)
    assert output.producer_location is not None
    assert output.producer_location.text.endswith("# softmax")


@pytest.mark.long
@pytest.mark.parametrize("make", MODELS)
def test_a_healthy_model_is_silent_and_a_sick_one_named(make: Callable[[bool], Any]) -> None:
    x, y = digits()
    healthy = sleuth.examine(make(False), (x, y), loss=cross_entropy, optimizer=optax.adam(2e-3), progress=False)
    assert not healthy.findings, healthy.to_text()
    assert len(healthy.clear) > 55
    sick = sleuth.examine(make(True), (x, y), loss=cross_entropy, optimizer=optax.adam(2e-3), progress=False)
    assert sick.culprits[0].finding.name == "double-softmax", sick.to_text()
    assert sick.culprits[0].finding.location is not None
    assert sick.culprits[0].finding.location.file == __file__


def test_the_users_model_and_its_random_streams_are_untouched() -> None:
    model = nnx_model()
    optimiser = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    before = [np.asarray(jax.random.key_data(a) if _is_key(a) else a) for a in jax.tree.leaves((nnx.state(model), optimiser))]
    with ADAPTER.bench(subject(model, optimiser)) as bench:
        batch = take_apart(BATCH)
        for _ in range(3):
            bench.step(batch)
        list(bench.observe(batch, 0))
        bench.set_training(False)
        bench.forward(batch.inputs)
    after = [np.asarray(jax.random.key_data(a) if _is_key(a) else a) for a in jax.tree.leaves((nnx.state(model), optimiser))]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert (model.drop.deterministic, nnx.Linear.__call__.__module__) == (False, "flax.nnx.nn.linear")


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


class Compiled:
    """A model of another library that is handed over together with its parameters."""

    def evaluate(self, params: Any, data: Any) -> Any: ...

    def __call__(self) -> None: ...


def test_what_is_not_a_model_is_not_claimed() -> None:
    things = [{}, [], {"x": np.ones(3)}, [nnx_model()], (1, 2), nnx.Module, jnp.ones(3), cross_entropy, (jnp.ones(3), "name")]
    assert not any(ADAPTER.claims(thing) for thing in things)
    assert not ADAPTER.claims((Compiled(), {"w": jnp.ones(3)}))
    assert ADAPTER.claims([(jnp.ones((2, 2)), jnp.ones(2))])


@pytest.mark.parametrize("arguments", [2, 3])
def test_a_tree_of_parameters_comes_with_a_function_of_it(arguments: int) -> None:
    def of_batch(params: Any, batch: Any) -> jax.Array:
        return cross_entropy(apply(params, batch[0]), batch[1])

    def of_both(params: Any, x: Any, y: Any) -> jax.Array:
        return cross_entropy(apply(params, x), y)

    given = Subject(parameters(jax.random.key(0)), BATCH, of_batch if arguments == 2 else of_both, 0.1)
    with ADAPTER.bench(given) as bench:
        batch = take_apart(BATCH)
        start = bench.loss(batch)
        for _ in range(20):
            bench.step(batch)
        assert bench.loss(batch) < start
        assert bench.lr == 0.1


def test_features_behind_a_stop_gradient_are_disconnected_with_the_line() -> None:
    def cut(params: Any, x: Any) -> jax.Array:
        hidden = jax.nn.relu(x @ params["first"]["w"] + params["first"]["b"])
        hidden = jax.lax.stop_gradient(hidden)
        return hidden @ params["second"]["w"] + params["second"]["b"]

    with ADAPTER.bench(subject((cut, parameters(jax.random.key(0))))) as bench:
        found = ADAPTER.connection(bench, take_apart(BATCH))
        gradients = bench.gradients(take_apart(BATCH)).by_path
    assert found.without_gradient == ("first.w", "first.b")
    assert [path for path, gradient in gradients.items() if gradient is None] == ["first.w", "first.b"]
    (place,) = {c.location.line for c in found.cuts if c.location is not None}
    assert place == inspect.getsourcelines(cut)[1] + 2
    assert found.cuts[0].operation == "stop_gradient"


def test_parameters_that_the_optimiser_leaves_alone_are_told() -> None:
    params = parameters(jax.random.key(0))
    labels = {"first": "frozen", "second": "trained"}
    tx = optax.multi_transform({"frozen": optax.set_to_zero(), "trained": optax.adam(1e-3)}, labels)
    found = ADAPTER.architecture(subject((apply, params), tx)).parameters
    assert {p.path: p.optimised for p in found} == {"first.w": False, "first.b": False, "second.w": True, "second.b": True}


ZERO, ADAM = optax.set_to_zero(), optax.adam(1e-3)


@pytest.mark.parametrize(
    ("tx", "frozen"),
    [
        (optax.multi_transform({"none": ZERO, "head": ADAM}, {"first": "none", "second": "head"}), True),
        (optax.multi_transform({False: ZERO, True: ADAM}, lambda params: {"first": False, "second": True}), True),
        (optax.chain(ADAM, optax.masked(ZERO, {"first": True, "second": False})), True),
        (optax.transforms.selective_transform(ADAM, freeze_mask={"first": True, "second": False}), True),
        # The optimiser that was made for the first is nobody's.
        (optax.multi_transform({"frozen": ZERO, "a": ADAM, "b": ADAM}, {"first": "frozen", "second": "b"}), False),
        (optax.masked(ADAM, {"first": False, "second": True}), False),
    ],
)
def test_updates_that_are_set_to_zero_on_purpose_freeze(tx: Any, frozen: bool) -> None:
    found = ADAPTER.architecture(subject((apply, parameters(jax.random.key(0))), tx)).parameters
    first = not frozen
    assert {p.path: p.trainable for p in found} == {"first.w": first, "first.b": first, "second.w": True, "second.b": True}


@pytest.mark.parametrize(
    ("tx", "name", "lr", "decay"),
    [
        (optax.sgd(0.1, momentum=0.9), "SGD", 0.1, None),
        (optax.adamw(1e-3, weight_decay=0.02), "AdamW", 1e-3, 0.02),
        (optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-4)), "Adam", 3e-4, None),
        (optax.inject_hyperparams(optax.adam)(learning_rate=0.25), "Adam", 0.25, None),
        (optax.rmsprop(0.01), "RMSprop", 0.01, None),
        (optax.adam(optax.warmup_cosine_decay_schedule(0.0, 0.01, 10, 1000)), "Adam", 0.0, None),
    ],
)
def test_settings_are_read_off_optax(tx: Any, name: str, lr: float, decay: float | None) -> None:
    settings = ADAPTER.settings(subject(plain_model(), tx))
    assert (settings.optimiser, settings.optimiser_options.get("weight_decay")) == (name, decay)
    assert settings.lr == pytest.approx(lr)
    with ADAPTER.bench(subject(plain_model(), tx)) as bench:
        bench.set_lr(0.125)
        before = np.array(bench.parameter("second.w"))
        bench.step(take_apart(BATCH))
        assert bench.lr == 0.125
        assert not np.array_equal(before, bench.parameter("second.w"))
