"""What the bench of JAX compiles, how often, and with how much care."""

import logging
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from sleuth.adapters.jax import ADAPTER
from sleuth.adapters.jax.bench import JaxBench
from sleuth.adapters.jax.compile_effort import CAREFUL, HASTY, numbers_made, options_for
from sleuth.adapters.jax.running import Programs
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts, Subject
from sleuth.probes.batch.input_ablation import without_inputs
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.one_batch import Samples
from sleuth.probes.lab.probe import Lab, all_probes

rng = np.random.default_rng(0)
# Shapes that no other test has: what was compiled before is not compiled again.
X, Y = rng.normal(size=(18, 13)).astype(np.float32), rng.integers(0, 3, 18)
BATCH = Parts(X, Y, (X, Y))


def loss(scores: jax.Array, target: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(scores, target).mean()


def params(width: int = 3) -> dict[str, Any]:
    return {
        "w": jax.device_put(rng.normal(size=(13, width)).astype(np.float32)),
        "b": jax.device_put(np.zeros(width, np.float32)),
    }


def plain(p: Any, x: Any) -> Any:
    return x @ p["w"] + p["b"]


def bench(apply: Callable[..., Any] = plain, optimiser: Any = 0.1) -> JaxBench:
    return JaxBench(Subject((apply, params()), (X, Y), loss, optimiser))


def compiled(caplog: pytest.LogCaptureFixture, work: Callable[[], Any]) -> list[str]:
    """The names of what was compiled meanwhile."""
    caplog.clear()
    with caplog.at_level(logging.WARNING), jax.log_compiles():
        work()
    told = [record.getMessage() for record in caplog.records]
    return [message.split()[4] for message in told if message.startswith("Finished XLA compilation of")]


def test_nothing_is_compiled_beside_the_programs_of_the_bench(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        held = bench()
        held.step(BATCH)
        wide = held.double()
        wide.write("w", np.ones((13, 3)))
        wide.gradients(BATCH)
        list(held.observe(BATCH, 0))

    assert set(compiled(caplog, work)) == {"jit(flattened)"}


def test_the_same_program_is_compiled_once_also_if_it_closes_over_arrays(caplog: pytest.LogCaptureFixture) -> None:
    def closing(shift: Any) -> Any:
        held = jax.device_put(np.full((18, 3), shift, np.float32))
        return lambda: bench(lambda p, x: plain(p, x) + held).loss(BATCH)

    assert compiled(caplog, closing(0.25))
    assert not compiled(caplog, closing(0.25))
    one, other = closing(0.25)(), closing(np.arange(3))()
    assert one != other


def test_programs_that_use_other_arguments_are_not_the_same() -> None:
    one, two = np.arange(17, dtype=np.float32), np.ones(17, np.float32)
    assert np.array_equal(Programs(wide=False).run("first", lambda a, b: 3 * a, one, two), 3 * one)
    assert np.array_equal(Programs(wide=False).run("second", lambda a, b: 3 * b, one, two), 3 * two)


@pytest.mark.parametrize(("modes", "traced"), [(False, 1), (True, 2)])
def test_a_model_without_modes_is_one_program(modes: bool, traced: int) -> None:
    calls = []

    def apply(p: Any, x: Any) -> Any:
        calls.append(1)
        return plain(p, x)

    def moody(p: Any, x: Any, training: bool) -> Any:
        return apply(p, x) * (1.0 if training else 2.0)

    held = bench(moody if modes else apply)
    found = []
    for training in (True, False):
        held.set_training(training)
        found.append(held.loss(BATCH))
    assert len(calls) == traced
    assert (found[0] == found[1]) is not modes


class Quiet(eqx.Module):
    linear: eqx.nn.Linear

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.linear(x)


class Dropping(eqx.Module):
    drop: eqx.nn.Dropout

    def __call__(self, x: jax.Array, *, key: jax.Array) -> jax.Array:
        return self.drop(x, key=key)


def test_layers_tell_whether_there_are_modes() -> None:
    linear = eqx.nn.Linear(13, 3, key=jax.random.key(0))
    several = [
        Quiet(linear),
        Dropping(eqx.nn.Dropout(0.5)),
        nnx.Linear(3, 3, rngs=nnx.Rngs(0)),
        nnx.Dropout(0.5, rngs=nnx.Rngs(0)),
    ]
    assert [JaxBench(Subject(model, ())).form.has_modes for model in several] == [False, True, False, True]


def counted() -> tuple[optax.GradientTransformation, dict[str, int]]:
    """An optimiser that counts how often it is asked."""
    inner, calls = optax.sgd(0.1), {"init": 0, "update": 0}

    def init(p: Any) -> Any:
        calls["init"] += 1
        return inner.init(p)

    def update(*given: Any) -> Any:
        calls["update"] += 1
        return inner.update(*given)

    return optax.GradientTransformation(init, update), calls


def test_in_double_precision_the_optimiser_is_not_begun() -> None:
    optimiser, calls = counted()
    held = bench(optimiser=optimiser)
    wide = held.double()
    wide.restore(wide.snapshot())
    wide.gradients(BATCH)
    assert calls["init"] == 1
    held.step(BATCH)
    assert calls["init"] == 1


def test_experiments_share_one_description_of_the_model() -> None:
    optimiser, calls = counted()
    lab = Lab(Subject((plain, params()), (X, Y), loss, optimiser), ADAPTER, 60.0)
    lab.train.batches.append(BATCH)
    lab.bench_ = JaxBench(lab.subject)
    for probe in all_probes():
        if probe.name in ("describing", "start", "offsets", "counting"):
            run_probe(probe, lab, lambda _: None)
    assert calls["update"] == 1


def jaxpr(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    return jax.make_jaxpr(function)(*(jnp.zeros(shape) for shape in shapes)).jaxpr


def test_large_programs_that_train_are_compiled_with_care() -> None:
    small, large = jaxpr(jnp.exp, (100,)), jaxpr(jnp.exp, (400_000,))
    assert options_for(("gradients", True), small, wide=False) is HASTY
    assert options_for(("gradients", True), large, wide=False) is CAREFUL
    assert options_for(("loss", True), large, wide=False) is HASTY
    assert options_for(("timed", ("loss", True)), small, wide=False) == {}


def test_the_work_of_loops_and_convolutions_counts() -> None:
    once = jaxpr(lambda x: jnp.exp(x), (50,))
    loop = jaxpr(lambda x: jax.lax.scan(lambda c, _: (jnp.exp(c), None), x, length=9)[0], (50,))
    assert (numbers_made(once), numbers_made(loop)) == (50, 450)
    conv = jaxpr(lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"), (1, 2, 8, 8), (4, 2, 3, 3))
    assert numbers_made(conv) == 256 + 256 * 18


def dropped(x: Any, key: Any) -> Any:
    return x * jax.random.bernoulli(key, 0.5, x.shape)


def looped(p: Any, x: Any) -> Any:
    def body(_: int, total: Any) -> Any:
        return total + dropped(x, jax.random.wrap_key_data(np.zeros(2, np.uint32)))

    return plain(p, jax.lax.fori_loop(0, 2, body, jnp.zeros_like(x)))


DICE: dict[str, tuple[Callable[..., Any], bool]] = {
    "none": (plain, False),
    "the same at every call": (lambda p, x: plain(p, dropped(x, jax.random.wrap_key_data(np.zeros(2, np.uint32)))), True),
    "the same, in a loop": (looped, True),
    "another at every call": (lambda p, x, key: plain(p, dropped(x, key)), False),
}


@pytest.mark.parametrize("name", DICE)
def test_inputs_are_not_taken_away_where_dice_tell_the_samples_apart(name: str) -> None:
    apply, repeats = DICE[name]
    held = bench(apply)
    held.gradients(BATCH)
    assert held.repeats_dice is repeats
    lab = Lab(held.subject, ADAPTER, 60.0, bench_=held)
    samples = Samples(BATCH, len(X), distinct=True)
    if repeats:
        with pytest.raises(Unsupported, match="the same way at every step"):
            without_inputs(lab, samples)
    else:
        assert np.ptp(without_inputs(lab, samples).inputs, axis=0).max() == 0
