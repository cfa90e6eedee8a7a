"""Trainings of a tree of arrays in MLX, without a module: noticed in whatever form they are written, and nothing else is."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten, tree_map

from sleuth.adapters.mlx.watching.discovery import MlxDiscovery
from sleuth.adapters.mlx.watching.listeners import LISTENERS
from sleuth.adapters.mlx.watching.watching import MlxWatching
from sleuth.core.contract.adapter import Attended, Discovered
from sleuth.core.observation import Batch, Call, Frame, NotFinite, Observation, Origin, Role, Step
from sleuth.core.trial import Connection

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 5)).astype(np.float32)
Y = (np.sin(X[:, :1]) + X[:, 1:2] ** 2 + 3).astype(np.float32)
STEPS = 40
mx.disable_compile()


class Watched(Attended):
    EVERY: int | None = 1

    def __init__(self, found: Discovered) -> None:
        self.found = found
        self.watching = MlxWatching(found.model, found.optimisers, every=self.EVERY, overhead=0.02, keeps=True)
        self.watching.open()

    @property
    def steps(self) -> int:
        return self.watching.steps

    def end(self) -> None:
        self.watching.close()

    def drop(self) -> None: ...

    def seen(self, kind: type) -> list[Any]:
        return [o for o in self.all if isinstance(o, kind)]

    @property
    def all(self) -> list[Observation]:
        self.__dict__.setdefault("drained", []).extend(self.watching.drain())
        return self.__dict__["drained"]


def discovered(run: Callable[[], Any]) -> tuple[list[Watched], Any]:
    found: list[Watched] = []

    def begin(one: Discovered) -> Watched:
        found.append(Watched(one))
        return found[-1]

    discovery = MlxDiscovery(begin)
    discovery.open()
    try:
        result = run()
    finally:
        discovery.close()
        for one in found:
            one.end()
    assert discovery.trouble is None, discovery.trouble
    assert all(one.watching.trouble is None for one in found), found[0].watching.trouble
    assert not LISTENERS
    return found, result


def init(seed: int = 0) -> dict[str, Any]:
    one, two = mx.random.split(mx.random.key(seed))
    return {
        "hidden": {"w": mx.random.normal((5, 16), key=one) * 5**-0.5, "b": mx.zeros((16,))},
        "out": {"w": mx.random.normal((16, 1), key=two) * 0.25, "b": mx.zeros((1,))},
    }


def forward(weights: Any, x: mx.array) -> mx.array:
    h = mx.tanh(x @ weights["hidden"]["w"] + weights["hidden"]["b"])
    return h @ weights["out"]["w"] + weights["out"]["b"]


def loss(weights: Any, x: mx.array, y: mx.array) -> mx.array:
    return mx.mean((forward(weights, x) - y) ** 2)


def batches(steps: int = STEPS) -> list[tuple[mx.array, mx.array]]:
    rng = np.random.default_rng(1)
    return [(mx.array(X[rows]), mx.array(Y[rows])) for rows in rng.integers(0, len(X), (steps, 20))]


def plain() -> Any:
    weights, gradient = init(), mx.value_and_grad(loss)
    for x, y in batches():
        value, found = gradient(weights, x, y)
        weights = tree_map(lambda w, g: w - 0.05 * g, weights, found)
        mx.eval(weights, value)
    return weights


def made_anew() -> Any:
    weights = init()
    for x, y in batches():
        value, found = mx.value_and_grad(lambda w, x, y: loss(w, x, y))(weights, x, y)
        weights = tree_map(lambda w, g: w - 0.05 * g, weights, found)
        mx.eval(weights, value)
    return weights


def in_place() -> Any:
    weights, gradient = init(), mx.value_and_grad(loss)
    for x, y in batches():
        _, found = gradient(weights, x, y)
        for layer, own in weights.items():
            for name in own:
                own[name] -= 0.05 * found[layer][name]
        mx.eval(weights)
    return weights


def several_arguments() -> Any:
    def of_two(hidden: Any, out: Any, x: mx.array, y: mx.array) -> mx.array:
        return loss({"hidden": hidden, "out": out}, x, y)

    weights = init()
    hidden, out = weights["hidden"], weights["out"]
    gradient = mx.value_and_grad(of_two, argnums=(0, 1))
    for x, y in batches():
        _, (one, two) = gradient(hidden, out, x, y)
        hidden, out = (tree_map(lambda w, g: w - 0.05 * g, w, g) for w, g in ((hidden, one), (out, two)))
        mx.eval(hidden, out)
    return hidden, out


def tuples() -> Any:
    def of_pairs(pairs: Any, x: mx.array, y: mx.array) -> mx.array:
        return loss({"hidden": dict(zip("wb", pairs[0], strict=True)), "out": dict(zip("wb", pairs[1], strict=True))}, x, y)

    weights = init()
    pairs = [(weights["hidden"]["w"], weights["hidden"]["b"]), (weights["out"]["w"], weights["out"]["b"])]
    gradient = mx.value_and_grad(of_pairs)
    for x, y in batches():
        _, found = gradient(pairs, x, y)
        pairs = [tuple(w - 0.05 * g for w, g in zip(*both, strict=True)) for both in zip(pairs, found, strict=True)]
        mx.eval(pairs)
    return pairs


def optimised() -> Any:
    weights, gradient, optimiser = init(), mx.value_and_grad(loss), optim.Adam(learning_rate=1e-2)
    for x, y in batches():
        _, found = gradient(weights, x, y)
        weights = optimiser.apply_gradients(found, weights)
        mx.eval(weights)
    return weights


def added_up() -> Any:
    weights, gradient, total = init(), mx.value_and_grad(loss), None
    for number, (x, y) in enumerate(batches(4 * STEPS), 1):
        _, found = gradient(weights, x, y)
        total = found if total is None else tree_map(mx.add, total, found)
        if number % 4 == 0:
            weights, total = tree_map(lambda w, g: w - 0.01 * g, weights, total), None
            mx.eval(weights)
    return weights


def compiled() -> Any:
    gradient = mx.value_and_grad(loss)

    @mx.compile
    def step(weights: Any, speed: Any, x: mx.array, y: mx.array) -> Any:
        value, found = gradient(weights, x, y)
        speed = tree_map(lambda v, g: 0.5 * v - 0.05 * g, speed, found)
        return tree_map(mx.add, weights, speed), speed, value

    weights = init()
    speed = tree_map(mx.zeros_like, weights)
    for x, y in batches():
        weights, speed, value = step(weights, speed, x, y)
        mx.eval(weights, speed, value)
    return weights


FORMS = (plain, made_anew, in_place, several_arguments, tuples, optimised, added_up)


@pytest.mark.parametrize("form", FORMS)
def test_a_training_of_a_tree_is_followed_from_its_first_step_in_every_form(form: Callable[[], Any]) -> None:
    expected = form()
    (one,), weights = discovered(form)
    assert all(mx.array_equal(a, b) for (_, a), (_, b) in zip(tree_flatten(expected), tree_flatten(weights), strict=True))
    assert one.steps == STEPS
    steps = [s for s in one.seen(Step) if s.loss is not None]
    assert len(steps) == STEPS
    assert steps[0].loss > 2 * steps[-1].loss > 0
    assert {c.kind for c in one.seen(Call) if c.location is not None} >= {"forward", "backward"}
    told = one.seen(Batch)
    assert sum(b.size for b in told) >= 400
    assert abs(told[0].inputs[0].statistics.mean) < 0.5  # of X, and not of Y
    updates = [f for f in one.seen(Frame) if f.role is Role.UPDATE]
    assert len(updates[0].paths) == 4
    assert all(np.isfinite(f.table).all() for f in updates)


def test_of_a_compiled_step_weights_loss_and_batches_are_heard() -> None:
    mx.enable_compile()
    try:
        expected = compiled()
        (one,), weights = discovered(compiled)
    finally:
        mx.disable_compile()
    assert all(mx.array_equal(a, b) for (_, a), (_, b) in zip(tree_flatten(expected), tree_flatten(weights), strict=True))
    assert one.steps == STEPS
    # A bias of one number stands before the loss among the results.
    assert next(s.loss for s in one.seen(Step)) == pytest.approx(loss(init(), *batches(1)[0]).item(), rel=1e-5)
    assert sum(b.size for b in one.seen(Batch)) >= 400
    assert [f for f in one.seen(Frame) if f.role is Role.UPDATE]


def test_what_nothing_depends_on_is_told() -> None:
    def run() -> None:
        weights, gradient = {**init(), "idle": {"w": mx.ones((3, 3))}}, mx.value_and_grad(loss)
        for x, y in batches():
            _, found = gradient(weights, x, y)
            weights = tree_map(lambda w, g: w - 0.05 * g, weights, found)
            mx.eval(weights)

    (one,), _ = discovered(run)
    (connection,) = one.seen(Connection)
    assert connection.without_gradient == ("idle.w",)


def test_a_gradient_that_breaks_has_its_operation() -> None:
    def rooted(weights: Any, x: mx.array, y: mx.array) -> mx.array:
        apart = forward(weights, x) - y
        return mx.mean(mx.sqrt(mx.sum(apart * apart, axis=-1)))  # no slope at zero

    def run() -> None:
        weights, gradient = init(), mx.value_and_grad(rooted)
        for step, (x, y) in enumerate(batches()):
            _, found = gradient(weights, x, forward(weights, x) if step == 12 else y)
            weights = tree_map(lambda w, g: w - 0.05 * g, weights, found)
            mx.eval(weights)

    (one,), _ = discovered(run)
    assert [n.what for n in one.seen(NotFinite) if n.step == 12] == ["gradient"]
    origin = next(o for o in one.seen(Origin))
    assert (origin.operation, origin.direction) == ("sqrt", "backward")
    assert origin.location.text.endswith("# no slope at zero")


def with_a_hole_at(step: int) -> None:
    gradient, weights = mx.value_and_grad(loss), init()
    for number, (x, y) in enumerate(batches(90)):
        given = x * mx.array([1.0, mx.nan if number == step else 1.0, 1.0, 1.0, 1.0])
        value, found = gradient(weights, given, y)
        weights = tree_map(lambda w, g: w - 0.05 * g, weights, found)
        mx.eval(weights, value)


@pytest.mark.parametrize("every", [None, 1])
def test_a_hole_in_a_late_batch_is_found_where_it_broke_the_training(every: int | None, monkeypatch) -> None:
    monkeypatch.setattr(Watched, "EVERY", every)
    (one,), _ = discovered(lambda: with_a_hole_at(70))
    found = {n.what: n for n in reversed(one.seen(NotFinite))}  # the first of each
    assert {found["loss"].step, found["input"].step} == {70}
    assert found["input"].nans == 20


def in_turn() -> None:
    """Several networks under one function."""
    gradient, nets = mx.value_and_grad(loss), [init(seed) for seed in range(3)]
    for step, (x, y) in enumerate(batches()):
        own = nets[step % 3]
        _, found = gradient(own, x, y)
        nets[step % 3] = tree_map(lambda w, g: w - 0.05 * g, own, found)
        mx.eval(nets)


def only_asked() -> None:
    gradient, weights = mx.value_and_grad(loss), init()
    for x, y in batches(10):
        mx.eval(gradient(weights, x, y))


def elsewhere() -> None:
    """The slope at places that were chosen without it."""
    gradient = mx.value_and_grad(loss)
    for seed, (x, y) in enumerate(batches(10)):
        mx.eval(gradient(init(seed), x, y))


def picture() -> None:
    weights, image = init(), mx.array(X[:20])
    gradient = mx.value_and_grad(lambda image, y: loss(weights, image, y))
    for _ in range(20):
        _, found = gradient(image, mx.array(Y[:20]))
        image = image + 0.01 * mx.sign(found)
        mx.eval(image)


def learning_to_learn() -> None:
    """Steps that a gradient is taken of, from the same start every time."""
    inner, start = mx.value_and_grad(loss), init()

    def after_two_steps(weights: Any, x: mx.array, y: mx.array) -> mx.array:
        for _ in range(2):
            _, found = inner(weights, x, y)
            weights = tree_map(lambda w, g: w - 0.05 * g, weights, found)
        return loss(weights, x, y)

    for x, y in batches(10):
        mx.eval(mx.value_and_grad(after_two_steps)(start, x, y))


def sample_by_sample() -> None:
    gradient, weights = mx.vmap(mx.value_and_grad(loss), in_axes=(None, 0, 0)), init()
    for x, y in batches(10):
        _, found = gradient(weights, x[:, None], y[:, None])
        weights = tree_map(lambda w, g: w - 0.05 * g.mean(0), weights, found)
        mx.eval(weights)


@pytest.mark.parametrize("run", [in_turn, only_asked, elsewhere, picture, learning_to_learn, sample_by_sample])
def test_a_gradient_alone_is_no_training(run: Callable[[], None]) -> None:
    found, _ = discovered(run)
    assert not found


def test_a_model_whose_weights_are_handed_over_as_a_tree_is_followed_once() -> None:
    def run() -> None:
        model, optimiser = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)), optim.SGD(learning_rate=0.05)

        def of_model(weights: Any, x: mx.array, y: mx.array) -> mx.array:
            model.update(weights)
            return mx.mean((model(x) - y) ** 2)

        gradient = mx.value_and_grad(of_model)
        for x, y in batches():
            _, found = gradient(model.trainable_parameters(), x, y)
            optimiser.update(model, found)
            mx.eval(model.parameters())

    (one,), _ = discovered(run)
    assert isinstance(one.found.model, nn.Sequential)


@pytest.mark.parametrize("seeds", [(0, 1, 2), (0, 0)])
def test_who_begins_anew_begins_another_training(seeds: tuple[int, ...]) -> None:
    def run() -> None:
        gradient = mx.value_and_grad(loss)
        for seed in seeds:
            weights = init(seed)
            for x, y in batches(60):
                value, found = gradient(weights, x, y)
                weights = tree_map(lambda w, g: w - 0.05 * g, weights, found)
                mx.eval(weights, value)

    found, _ = discovered(run)
    assert len(found) == len(seeds)
    assert all(52 <= one.steps <= 68 for one in found)
    assert sum(one.steps for one in found) <= 60 * len(seeds)
