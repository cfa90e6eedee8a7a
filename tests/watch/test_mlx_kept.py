"""What passes by in a loop of MLX is kept, in whatever form people write it: batches, targets, the loss, the first weights."""

from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten

from sleuth.adapters.mlx.arrays import native
from sleuth.adapters.mlx.watching.watching import MlxWatching
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Batch, Call, LossCall, NotFinite, Observation, Origin
from sleuth.core.trial import Connection

RNG = np.random.default_rng(5)
X = RNG.normal(size=(640, 7)).astype(np.float32)
Y = (X @ RNG.normal(size=(7, 3))).argmax(1).astype(np.int32)
HELD_OUT = mx.array(RNG.normal(size=(90, 7)).astype(np.float32))
mx.disable_compile()


class Net(nn.Module):
    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.inner = nn.Linear(7, 16)
        self.outer = nn.Linear(16, outputs)

    def __call__(self, x: mx.array) -> mx.array:
        return self.outer(nn.silu(self.inner(x)))


Gradient = Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]


def closure(model: nn.Module) -> Gradient:
    gradient = nn.value_and_grad(model, lambda x, y: nn.losses.cross_entropy(model(x), y).mean())
    return lambda x, y: gradient(mx.array(x), mx.array(y))


def pair(model: nn.Module) -> Gradient:
    def loss(model: nn.Module, batch: Any) -> mx.array:
        x, y = batch
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    gradient = nn.value_and_grad(model, loss)
    return lambda x, y: gradient(model, (mx.array(x), mx.array(y)))


def mapping(model: nn.Module) -> Gradient:
    gradient = nn.value_and_grad(model, lambda batch: nn.losses.cross_entropy(model(batch["x"]), batch["y"], reduction="mean"))
    return lambda x, y: gradient({"x": mx.array(x), "y": mx.array(y)})


def method(model: nn.Module) -> Gradient:
    class Trainer:
        def loss(self, x: mx.array, y: mx.array) -> mx.array:
            chances = nn.log_softmax(model(x), axis=-1)
            return -mx.mean(mx.take_along_axis(chances, y[:, None], axis=1))

    gradient = nn.value_and_grad(model, Trainer().loss)
    return lambda x, y: gradient(mx.array(x), mx.array(y))


def converted(model: nn.Module) -> Gradient:
    gradient = nn.value_and_grad(model, lambda x, y: nn.losses.cross_entropy(model(mx.array(x)), mx.array(y), reduction="mean"))
    return lambda x, y: gradient(x, y)


def penalty(model: nn.Module) -> Gradient:
    def loss(model: nn.Module, x: mx.array, y: mx.array) -> mx.array:
        value = -mx.mean(mx.sum(mx.eye(3)[y] * nn.log_softmax(model(x), axis=-1), axis=-1))
        value += 1e-3 * mx.sum(model.inner.weight**2)
        return value

    gradient = nn.value_and_grad(model, loss)
    return lambda x, y: gradient(model, mx.array(x), mx.array(y))


def beside(model: nn.Module) -> Gradient:
    def loss(model: nn.Module, x: mx.array, y: mx.array) -> tuple[mx.array, mx.array]:
        scores = model(x)
        return nn.losses.cross_entropy(scores, y, reduction="mean"), mx.mean(scores.argmax(1) == y)

    gradient = nn.value_and_grad(model, loss)

    def call(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        (value, _), found = gradient(model, mx.array(x), mx.array(y))
        return value, found

    return call


def tree(model: nn.Module) -> Gradient:
    def loss(weights: Any, x: mx.array, y: mx.array) -> mx.array:
        model.update(weights)
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    gradient = mx.value_and_grad(loss)
    return lambda x, y: gradient(model.trainable_parameters(), mx.array(x), mx.array(y))


FORMS = (closure, pair, mapping, method, converted, penalty, beside, tree)


def batches(steps: int) -> Any:
    rng = np.random.default_rng(1)
    return ((X[rows], Y[rows]) for rows in rng.integers(0, len(X), (steps, 20)))


def train(model: nn.Module, gradient: Gradient, steps: int, optimiser: Any = None) -> list[np.ndarray]:
    optimiser = optimiser or optim.SGD(learning_rate=1e-2)
    for step, (x, y) in enumerate(batches(steps)):
        loss, found = gradient(x, y)
        optimiser.update(model, found)
        mx.eval(model.parameters(), optimiser.state, loss)
        if step % 10 == 9:
            model(HELD_OUT).argmax(1).tolist()
    return [np.array(a) for _, a in tree_flatten([model.parameters(), list(mx.random.state)])]


def watched(model: nn.Module, run: Callable[[Any], Any]) -> tuple[Kept, list[Observation], Any]:
    optimiser = optim.SGD(learning_rate=1e-2)
    watching = MlxWatching(model, [optimiser], every=None, overhead=0.02, keeps=True)
    watching.open()
    try:
        result = run(optimiser)
    finally:
        watching.close()
    assert watching.trouble is None, watching.trouble
    kept = watching.take_kept()
    assert kept is not None
    return kept, watching.drain(), result


def first(kind: type, seen: list[Observation]) -> Any:
    return next((o for o in seen if isinstance(o, kind)), None)


@pytest.mark.parametrize("form", FORMS)
def test_batches_targets_and_the_loss_are_kept_in_every_form(form: Callable[[nn.Module], Gradient]) -> None:
    mx.random.seed(2)
    model = Net()
    kept, seen, _ = watched(model, lambda optimiser: train(model, form(model), 40, optimiser))
    assert kept.at_start, kept.remarks
    (x, y), *_, (late_x, late_y) = batches(40)
    assert np.array_equal(kept.train[0].parts.inputs, x)
    assert np.array_equal(kept.train[0].parts.target, y)
    # The loss says to another batch what the user's function says to it.
    fresh = kept.subject.model
    expected, _ = form(fresh)(late_x, late_y)
    parts = native(kept.train[-1].parts)
    assert kept.subject.loss is not None
    assert kept.train[-1].step == 39
    assert abs(float(kept.subject.loss(fresh(parts.inputs), parts.target).item()) - float(expected.item())) < 1e-5
    told = [b for b in seen if isinstance(b, Batch)]
    assert sum(b.size for b in told) >= 400
    assert set(told[0].labels or ()) <= {0, 1, 2}
    assert (call := first(LossCall, seen)) is not None
    assert call.family == ("cross-entropy" if form not in (method, penalty) else call.family)


@pytest.mark.parametrize("form", [closure, method, tree])
def test_what_is_kept_changes_nothing(form: Callable[[nn.Module], Gradient]) -> None:
    mx.random.seed(2)
    plain = Net()
    expected = train(plain, form(plain), 30)
    mx.random.seed(2)
    other = Net()
    _, _, found = watched(other, lambda optimiser: train(other, form(other), 30, optimiser))
    assert all(np.array_equal(one, two) for one, two in zip(expected, found, strict=True))


def test_what_the_model_is_asked_about_is_kept_apart() -> None:
    model = Net()
    kept, _, _ = watched(model, lambda optimiser: train(model, closure(model), 40, optimiser))
    own = [group for group in kept.validation if group.of_its_own]
    assert [group.samples for group in own] == [90]
    assert np.array_equal(own[0].batches[0].parts.inputs, np.array(HELD_OUT))


def test_a_loss_function_that_is_called_for_its_value_tells_the_target_of_a_validation() -> None:
    model = Net(1)
    wanted = mx.array(np.linspace(0, 1, 90).astype(np.float32))

    def loss(model: nn.Module, x: mx.array, y: mx.array) -> mx.array:
        return mx.mean((model(x)[:, 0] - y) ** 2)

    gradient = nn.value_and_grad(model, loss)

    def run(optimiser: Any) -> None:
        for x, y in batches(12):
            _, found = gradient(model, mx.array(x), mx.array(y.astype(np.float32)))
            optimiser.update(model, found)
            mx.eval(model.parameters())
            loss(model, HELD_OUT, wanted).item()

    kept, _, _ = watched(model, run)
    assert all(np.array_equal(p.parts.target, np.array(wanted)) for group in kept.validation for p in group.batches)


def test_a_step_that_is_compiled_is_kept_by_its_arguments() -> None:
    mx.enable_compile()
    try:
        mx.random.seed(2)
        model, optimiser = Net(), optim.SGD(learning_rate=1e-2)
        state = [model.state, optimiser.state]

        def run(_: Any) -> None:
            gradient = nn.value_and_grad(model, lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean"))

            @partial(mx.compile, inputs=state, outputs=state)
            def step(x: mx.array, y: mx.array) -> mx.array:
                loss, found = gradient(x, y)
                optimiser.update(model, found)
                return loss

            for x, y in batches(20):
                mx.eval(step(mx.array(x), mx.array(y)), state)

        kept, _, _ = watched(model, run)
    finally:
        mx.disable_compile()
    assert kept.at_start, kept.remarks
    assert kept.train[0].parts.target.shape == (20,)


def test_what_depends_on_the_size_of_the_batch_is_called_again_for_batches_of_that_size() -> None:
    model = Net()

    def loss(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="sum") / x.shape[0]

    gradient = nn.value_and_grad(model, loss)
    kept, _, _ = watched(model, lambda optimiser: train(model, lambda x, y: gradient(mx.array(x), mx.array(y)), 12, optimiser))
    assert kept.at_start, kept.remarks
    assert kept.batch_size == 20
    assert np.array_equal(kept.train[0].parts.target, next(batches(1))[1])


@pytest.mark.parametrize("paired", ["classes", "numbers"])
def test_the_target_of_a_loss_of_pairs_is_what_the_pairs_are_made_of(paired: str) -> None:
    model = Net()

    def loss(x: mx.array, y: mx.array) -> mx.array:
        z = model(x)
        apart = mx.sum(mx.abs(z[:, None, :] - z[None, :, :]), axis=-1)
        alike = (y[:, None] == y[None, :]).astype(mx.float32) if paired == "classes" else -mx.abs(y[:, None] - y[None, :])
        return mx.mean(alike * apart + (1 - alike) * mx.maximum(1 - apart, 0))

    gradient = nn.value_and_grad(model, loss)

    def both(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        return gradient(mx.array(x), mx.array(y if paired == "classes" else y.astype(np.float32)))

    kept, _, _ = watched(model, lambda optimiser: train(model, both, 12, optimiser))
    assert kept.at_start, kept.remarks
    assert kept.train[0].parts.target.shape == (20,)
    assert kept.batch_size is None


def test_a_loss_that_takes_no_fewer_samples_is_kept_for_batches_of_their_size() -> None:
    model = Net()
    row = mx.array(np.linspace(0.5, 1.5, 20).astype(np.float32))[None]

    def loss(x: mx.array, y: mx.array) -> mx.array:
        return mx.mean(nn.losses.cross_entropy(model(x), y)[None] * row)

    gradient = nn.value_and_grad(model, loss)
    kept, _, _ = watched(model, lambda optimiser: train(model, lambda x, y: gradient(mx.array(x), mx.array(y)), 12, optimiser))
    assert kept.at_start, kept.remarks
    assert kept.batch_size == 20


def test_the_operation_of_the_first_nan_is_found_at_a_step_that_nobody_looked_at() -> None:
    model = Net(1)

    def loss(x: mx.array, y: mx.array) -> mx.array:
        shares = mx.sigmoid(model(x)[:, 0]) / mx.abs(y).sum()  # of nothing
        return mx.mean(shares**2)

    gradient = nn.value_and_grad(model, loss)

    def run(optimiser: Any) -> None:
        for step, (x, y) in enumerate(batches(60)):
            value, found = gradient(mx.array(x), mx.array(y.astype(np.float32)) + 1 if step != 37 else mx.zeros(20))
            optimiser.update(model, found)
            mx.eval(model.parameters(), value)

    _, seen, _ = watched(model, run)
    broken, origin = first(NotFinite, seen), first(Origin, seen)
    assert (broken.step, origin.step) == (37, 37)
    assert origin.outside
    assert origin.location.text.endswith("# of nothing")


def test_schedules_and_layers_have_the_line_that_made_them() -> None:
    def run() -> nn.Module:
        model = nn.Sequential(
            nn.Linear(7, 8),
            nn.Tanh(),  # here
            nn.Linear(8, 3),
        )
        return model

    outer = Net()
    watching = MlxWatching(outer, [], every=None, overhead=0.02)
    watching.open()
    from sleuth.adapters.mlx.adapter import MlxAdapter
    from sleuth.core.subject import Subject

    try:
        model = run()
        layers = {layer.path: layer for layer in MlxAdapter().architecture(Subject(model, None)).layers}
    finally:
        watching.close()
    assert layers["layers.1"].location is not None
    assert layers["layers.1"].location.text.endswith("# here")
    model = Net()
    _, seen, _ = watched(model, lambda _: train(model, closure(model), 6, optim.SGD(optim.cosine_decay(1e-2, 4))))
    made = next(o for o in seen if isinstance(o, Call) and o.kind == "made-scheduler")
    assert made.location is not None
    assert "cosine_decay" in made.location.text


class Cut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(7, 5), nn.Linear(7, 6)
        self.outer = nn.Linear(11, 3)

    def __call__(self, x: mx.array) -> mx.array:
        right = mx.stop_gradient(nn.relu(self.right(x)))  # cut
        return self.outer(mx.concatenate([nn.relu(self.left(x)), right], axis=1))


def test_the_line_that_cuts_the_way_to_a_layer_is_told() -> None:
    model = Cut()
    _, seen, _ = watched(model, lambda optimiser: train(model, closure(model), 60, optimiser))
    found = first(Connection, seen)
    assert set(found.without_gradient) == {"right.weight", "right.bias"}
    assert found.cuts[0].location.text.endswith("# cut")


class Hidden(nn.Module):
    """`where` the layers with the underscore stand."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.first = nn.Linear(7, 16)
        self._middle = nn.Linear(16 if where != "front" else 7, 16)
        self.last = nn.Linear(16, 3)
        self.where = where
        if where == "frozen":
            self._middle.freeze()
        if where == "trained elsewhere":
            self._middle.weight = mx.random.normal((16, 16)) * 0.2

    def __call__(self, x: mx.array) -> mx.array:
        if self.where == "front":
            return self.last(nn.tanh(self.first(x) + self._middle(x)))
        return self.last(nn.tanh(self._middle(nn.tanh(self.first(x)))))


@pytest.mark.parametrize("where", ["between", "front", "frozen", "trained elsewhere"])
def test_only_a_hidden_layer_between_trained_ones_that_stays_as_it_was_made_is_a_mistake(where: str) -> None:
    from sleuth.adapters.mlx.adapter import MlxAdapter
    from sleuth.core.subject import Parts, Subject

    mx.random.seed(4)
    adapter = MlxAdapter()
    with adapter.bench(Subject(Hidden(where), None, lambda o, t: nn.losses.cross_entropy(o, t, reduction="mean"))) as bench:
        found = adapter.connection(bench, Parts(X[:20], Y[:20], (X[:20], Y[:20])))
    assert [s.path for s in found.strangers or ()] == (["_middle"] if where == "between" else [])
    assert all(s.location is not None and "self._middle" in s.location.text for s in found.strangers or ())
