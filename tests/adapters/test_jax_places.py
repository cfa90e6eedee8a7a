"""Lines of weights: where the user makes a layer of Equinox, or writes down a tree of arrays."""

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sleuth import Subject
from sleuth.adapters import adapter_named
from sleuth.adapters.jax.describing import describe
from sleuth.adapters.jax.source_lines import written_at
from sleuth.adapters.jax.watching import layer_places
from sleuth.adapters.jax.watching.patches import Patches
from sleuth.core.contract.adapter import Attended, Discovered
from sleuth.core.engine import Engine
from sleuth.core.observation import Architecture
from sleuth.session.watch import Watch


class Net(eqx.Module):
    first: eqx.nn.Linear
    stack: list[Any]
    scale: Any

    def __init__(self, key: Any) -> None:
        one, two = jax.random.split(key)
        self.first = eqx.nn.Linear(3, 8, key=one)
        self.stack = [jax.nn.relu, eqx.nn.MLP(8, 1, 4, 1, key=two)]
        self.scale = jnp.ones(1)

    def __call__(self, x: Any) -> Any:
        h = self.first(x)
        for part in self.stack:
            h = part(h)
        return self.scale * h


def train(*, compiled: bool) -> None:
    model = Net(jax.random.key(0))
    tx = optax.sgd(0.1)
    state = tx.init(eqx.filter(model, eqx.is_array))

    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x)[:, 0] - y) ** 2))(model)
        updates, state = tx.update(grads, state)
        return eqx.apply_updates(model, updates), state, value

    step = eqx.filter_jit(step) if compiled else step
    rng = np.random.default_rng(0)
    for _ in range(3):
        model, state, _ = step(model, state, rng.normal(size=(16, 3)), rng.normal(size=16))


class Seen(Attended):
    steps = 0

    def __init__(self, watch: Watch, found: Discovered) -> None:
        self.watch, self.architecture = watch, describe(Subject(found.model, None))

    def end(self) -> None: ...

    def drop(self) -> None: ...


def architecture_of(*, compiled: bool) -> Architecture:
    """As `sleuth run` meets the model."""
    adapter: Any = adapter_named("jax")
    met: list[Seen] = []

    def begin(found: Discovered) -> Attended:
        options: dict[str, Any] = {"every": 8, "overhead": 0.02, "folder": None, "quiet": True, "name": ""}
        watch = Watch(adapter, found.model, found.optimisers, Engine([]), **options)
        met.append(Seen(watch.open(), found))
        return met[-1]

    discovering = adapter.discover(begin)
    discovering.open()
    try:
        train(compiled=compiled)
    finally:
        discovering.close()
        for one in met:
            one.watch.close()
    return met[0].architecture


@pytest.mark.parametrize("compiled", [True, False])
def test_weights_of_equinox_have_the_line_that_makes_their_layer(compiled: bool) -> None:
    lines = {p.path: p.location.text for p in architecture_of(compiled=compiled).parameters if p.location is not None}
    assert lines["first.weight"].startswith("self.first = eqx.nn.Linear(3")
    assert lines["stack.1.layers.0.weight"].startswith("self.stack = ")
    assert lines["scale"].startswith("model = Net(")


def test_a_layer_of_equinox_has_its_line_and_nothing_is_held() -> None:
    layers = {layer.path: layer for layer in architecture_of(compiled=True).layers}
    first = layers["first"].location
    assert first is not None
    assert "self.first" in first.text
    del layers, first
    assert not layer_places.ARRAYS


SCRIPT = """
def dense(key, n, m):
    return {"w": draw(key, n, m),
            "b": zeros(m)}

def other(n):
    return {"w": zeros(n)}

params = {"one": dense(1, 2, 3), "two": other(4),
          "table": draw(9, 9)}
"""


@pytest.mark.parametrize(("path", "line"), [("one.w", 3), ("one.b", 4), ("two.w", 7), ("table", 10), ("three.w", None)])
def test_a_weight_that_a_function_makes_has_the_line_inside_it(
    path: str, line: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(file), raising=False)
    found = written_at(path)
    assert (None if found is None else found.line) == line


class Told:
    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def failed(self, error: Exception) -> None:
        self.errors.append(error)


def test_what_goes_wrong_in_an_import_of_the_users_is_told_and_not_raised() -> None:
    def break_down() -> None:
        raise KeyError("flax.nnx")

    told = Told()
    Patches(told)._when("jax", break_down)  # type: ignore[arg-type]
    assert [type(error) for error in told.errors] == [KeyError]
