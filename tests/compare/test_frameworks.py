"""One model in two frameworks: layouts, gates, channels, and defaults that are not the same everywhere."""

from typing import Any

import pytest
import torch
from torch import nn

import sleuth
from tests.compare.models import IMAGES, Images, X, Y, mlp, subject

TOKENS = torch.randint(0, 20, (7, 9), generator=torch.Generator().manual_seed(0))


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.reader, self.head = nn.Embedding(20, 6), nn.LSTM(6, 5, batch_first=True), nn.Linear(5, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.reader(self.table(ids))[0][:, -1])


def in_mlx(model: Any, **adam: Any) -> sleuth.Subject:
    import mlx.nn
    import mlx.optimizers

    return sleuth.Subject(
        model,
        None,
        lambda output, target: mlx.nn.losses.cross_entropy(output, target, reduction="mean"),
        mlx.optimizers.Adam(1e-3, **adam),
    )


def mlp_in_mlx() -> Any:
    import mlx.nn as mnn

    layers = (mnn.Linear(8, 16), mnn.LayerNorm(16), mnn.GELU(), mnn.Linear(16, 16), mnn.ReLU(), mnn.Linear(16, 4))
    return mnn.Sequential(*layers)


def test_adam_without_bias_correction_is_the_only_difference() -> None:
    found = sleuth.compare(subject(mlp()), in_mlx(mlp_in_mlx()), (X, Y))
    assert found.parted.stage == "step", str(found)
    assert found.reasons[0].name == "bias correction"
    assert "without bias correction" in found.reasons[0].text
    assert found.reasons[0].after < 1e-4
    assert sleuth.compare(subject(mlp()), in_mlx(mlp_in_mlx(), bias_correction=True), (X, Y)).status == "same"


def test_images_are_turned_and_what_lies_behind_a_flatten_is_reordered() -> None:
    import mlx.nn as mnn

    class Turned(mnn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.head = mnn.Conv2d(3, 5, 3, padding=1), mnn.BatchNorm(5), mnn.Linear(320, 4)

        def __call__(self, x: Any) -> Any:
            return self.head(mnn.relu(self.norm(self.conv(x))).reshape(len(x), -1))

    found = sleuth.compare(subject(Images()), in_mlx(Turned(), bias_correction=True), (IMAGES, Y[:6]))
    assert found.status == "same", str(found)
    assert found.pairs[0].carried == 6


def test_an_lstm_with_one_bias_answers_alike_and_learns_otherwise() -> None:
    import mlx.nn as mnn

    class Reader(mnn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.reader, self.head = mnn.Embedding(20, 6), mnn.LSTM(6, 5), mnn.Linear(5, 4)

        def __call__(self, ids: Any) -> Any:
            return self.head(self.reader(self.table(ids))[0][:, -1])

    found = sleuth.compare(subject(Words()), in_mlx(Reader(), bias_correction=True), (TOKENS, Y[:7]))
    assert {row.stage for row in found.pairs[0].rows if row.differs} == {"step"}, str(found)
    assert found.reasons[0].name == "two biases"


@pytest.mark.long
def test_weights_that_lie_side_by_side_are_matched_by_their_numbers() -> None:
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp
    import optax

    def apply(p: dict[str, Any], x: Any) -> Any:
        return jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    first, second = jax.random.split(jax.random.key(0))
    weights = {"w1": jax.random.normal(first, (8, 16)), "w2": jax.random.normal(second, (16, 4))}
    params = {**weights, "b1": jnp.zeros(16), "b2": jnp.zeros(4)}

    def loss(output: Any, target: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(output, target).mean()

    mine = subject(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)))
    found = sleuth.compare(mine, sleuth.Subject((apply, params), None, loss, optax.adam(1e-3)), (X, Y))
    assert found.status == "same", str(found)
    assert found.pairs[0].carried == 4


def test_functions_between_layers_are_told_apart_where_no_layer_stands_for_them() -> None:
    import jax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, between: Any, epsilon: float) -> None:
            rngs = nnx.Rngs(0)
            self.enter, self.norm = nnx.Linear(8, 16, rngs=rngs), nnx.LayerNorm(16, epsilon=epsilon, rngs=rngs)
            self.head, self.between = nnx.Linear(16, 4, rngs=rngs), between

        def __call__(self, x: Any) -> Any:
            return self.head(self.norm(self.between(self.enter(x))))

    def exact(x: Any) -> Any:
        return jax.nn.gelu(x, approximate=False)

    ours = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    assert sleuth.compare(ours, Net(exact, 1e-5), X).status == "same"
    (reason,) = sleuth.compare(ours, Net(jax.nn.gelu, 1e-5), X).reasons
    assert reason.name == "variant"
    assert "gelu with erf (exact)" in reason.text
    assert "gelu with tanh (approximate)" in reason.text
    assert "epsilon" not in reason.text
    assert reason.after < 1e-9
    (reason,) = sleuth.compare(ours, Net(jax.nn.silu, 1e-6), X).reasons
    assert "silu" in reason.text
    assert "with epsilon 1e-05, jax with epsilon 1e-06" in reason.text
