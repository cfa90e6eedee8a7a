"""The cases' parts in JAX: layers and models of Flax NNX, optimisers of optax, batches in NumPy as JAX users hand them on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import sleuth
from sleuth import Subject
from sleuth.testing import CannotBuild, Kit, Loop, Training
from tests.kits.jax_absent import ABSENT
from tests.kits.jax_layers import FUNCTIONS, LAYERS, Conv2d, Offset
from tests.kits.loops import Loader, batches

# Small models run faster in the thread that asks for them.
jax.config.update("jax_cpu_enable_async_dispatch", False)
# Most of a case's time is compilation, and the next run compiles the same.
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[2] / ".pytest_cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

ACTIVATIONS = {"relu": nnx.relu, "sigmoid": nnx.sigmoid, "tanh": nnx.tanh, "gelu": nnx.gelu}


def cross_entropy(scores: jax.Array, target: jax.Array) -> jax.Array:
    if target.ndim == scores.ndim:
        return optax.softmax_cross_entropy(scores, target).mean()
    return optax.softmax_cross_entropy_with_integer_labels(scores, target).mean()


def nll(logs: jax.Array, target: jax.Array) -> jax.Array:
    return -jnp.take_along_axis(logs, target[:, None], 1).mean()


def bce(p: jax.Array, target: jax.Array) -> jax.Array:
    _same_shape(p, target)
    p = jnp.clip(p, 1e-7, 1 - 1e-7)
    return -(target * jnp.log(p) + (1 - target) * jnp.log(1 - p)).mean()


def bce_logits(scores: jax.Array, target: jax.Array) -> jax.Array:
    _same_shape(scores, target)
    return optax.sigmoid_binary_cross_entropy(scores, target).mean()


def mse(output: jax.Array, target: jax.Array) -> jax.Array:
    return ((output - target) ** 2).mean()


def l1(output: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.abs(output - target).mean()


LOSSES = {"cross-entropy": cross_entropy, "nll": nll, "bce": bce, "bce-logits": bce_logits, "mse": mse, "l1": l1}


def _same_shape(one: Any, other: Any) -> None:
    if one.shape != other.shape:
        raise ValueError(f"output {one.shape} and target {other.shape} must have the same shape")


def weighted(weight: np.ndarray | None = None, label_smoothing: float = 0.0, ignore_index: int | None = None) -> Any:
    """Cross-entropy with the options that optax leaves to its users."""

    def weighted_cross_entropy(scores: jax.Array, target: jax.Array) -> jax.Array:
        wanted = optax.smooth_labels(jax.nn.one_hot(target, scores.shape[-1]), label_smoothing)
        each = optax.softmax_cross_entropy(scores, wanted)
        share = jnp.ones(each.shape) if weight is None else jnp.asarray(weight, jnp.float32)[target]
        share = share if ignore_index is None else share * (target != ignore_index)
        return (share * each).sum() / share.sum()

    return weighted_cross_entropy


class JaxKit(Kit):
    name = "jax"
    absent: ClassVar = ABSENT

    @property
    def rngs(self) -> nnx.Rngs:
        """From NumPy's generator, which the tests seed."""
        return nnx.Rngs(int(np.random.randint(2**31)))

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> nnx.Linear:
        return nnx.Linear(inputs, outputs, use_bias=bias, rngs=self.rngs)

    def activation(self, name: str) -> Callable[[jax.Array], jax.Array]:
        return ACTIVATIONS[name]

    def layer(self, name: str, *args: Any, **options: Any) -> Any:
        if name in FUNCTIONS:
            return FUNCTIONS[name](*args, **options)
        if name == "offset":
            return Offset(*args)
        if name not in LAYERS:
            raise CannotBuild(f"the jax kit has no layer {name}")
        try:
            return LAYERS[name](*args, **options, rngs=self.rngs)
        except TypeError as error:
            raise CannotBuild(f"the jax kit's {name} lacks an option: {error}") from None

    def sequential(self, *layers: Any) -> nnx.Sequential:
        return nnx.Sequential(*layers)

    def weights(self, layer: Any) -> np.ndarray:
        if isinstance(layer, nnx.Linear):
            return np.array(layer.kernel[...]).T
        if isinstance(layer, Conv2d):
            return np.array(layer.conv.kernel[...]).transpose(3, 2, 0, 1)
        return np.array(layer.embedding[...])

    def set_weights(self, layer: Any, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        held, values = layer, weight.T
        if isinstance(layer, Conv2d):
            held, values = layer.conv, weight.transpose(2, 3, 1, 0)
        if isinstance(layer, nnx.Embed):
            layer.embedding[...] = jnp.asarray(weight, jnp.float32)
            return
        held.kernel[...] = jnp.asarray(values, held.kernel[...].dtype)
        if bias is not None:
            held.bias[...] = jnp.asarray(bias, held.bias[...].dtype)

    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> Loader:
        return Loader(x, y, batch_size, shuffle)

    def loss(self, name: str, **options: Any) -> Callable[[jax.Array, jax.Array], jax.Array]:
        if name not in LOSSES:
            raise CannotBuild(f"the jax kit has no loss {name}")
        if not options:
            return LOSSES[name]
        if name != "cross-entropy":
            raise CannotBuild(f"the jax kit's {name} has no options")
        try:
            return weighted(**options)
        except TypeError as error:
            raise CannotBuild(f"the jax kit's {name} lacks an option: {error}") from None

    def optimiser(self, model: Any, name: str = "adam", lr: float = 1e-3, **options: Any) -> optax.GradientTransformation:
        decay = options.pop("weight_decay", 0.0)
        if name == "adam":
            betas = options.pop("betas", (0.9, 0.999))
            options |= {"b1": betas[0], "b2": betas[1]}
        made = {"adam": optax.adam, "sgd": optax.sgd}[name](lr, **options)
        return optax.chain(optax.add_decayed_weights(decay), made) if decay else made

    def loop(self, training: Training) -> Loop:
        subject = training.subject
        model, optimiser = subject.model, nnx.Optimizer(subject.model, subject.optimizer, wrt=nnx.Param)

        @nnx.jit
        def step(model: nnx.Module, optimiser: nnx.Optimizer, batch: Any) -> jax.Array:
            value, gradients = nnx.value_and_grad(lambda model: _loss(subject, model, batch))(model)
            optimiser.update(model, gradients)
            return value

        def train(step: Callable[..., Any]) -> None:
            model.train()
            for batch in batches(subject, training.steps):
                step(model, optimiser, batch)

        def run(w: Any) -> None:
            watched = sleuth.watch_step(step)
            try:
                train(watched)
            finally:
                watched.close()

        return Loop(model, [optimiser], run, training.options, unwatched=lambda: train(step))


def _loss(subject: Subject, model: Any, batch: Any) -> jax.Array:
    if subject.step is not None:
        return subject.step(model, batch)
    x, y = batch
    return subject.loss(model(x), y)
