import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits


@dataclass
class Config:
    epochs: int = 16
    batch: int = 64
    peak: float = 3e-3
    seed: int = 21


class ConvNet(eqx.Module):
    conv1: eqx.nn.Conv2d
    conv2: eqx.nn.Conv2d
    pool: eqx.nn.MaxPool2d
    fc: eqx.nn.Linear

    def __init__(self, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.conv1 = eqx.nn.Conv2d(1, 8, 3, padding=1, key=k1)
        self.conv2 = eqx.nn.Conv2d(8, 16, 3, padding=1, key=k2)
        self.pool = eqx.nn.MaxPool2d(2, 2)
        self.fc = eqx.nn.Linear(16 * 2 * 2, 10, key=k3)

    def __call__(self, x):
        x = self.pool(jax.nn.relu(self.conv1(x)))
        x = self.pool(jax.nn.relu(self.conv2(x)))
        return self.fc(x.reshape(-1))


def loader(x, y, batch, rng):
    order = rng.permutation(len(x))
    for i in range(0, len(x) - batch + 1, batch):
        yield x[order[i : i + batch]], y[order[i : i + batch]]


def main(cfg):
    digits = load_digits()
    x = (digits.images[:, None] / 16.0).astype(np.float32)
    x = (x - x.mean()) / x.std()
    y = digits.target
    rng = np.random.default_rng(cfg.seed)
    perm = rng.permutation(len(x))
    tr, te = perm[:1400], perm[1400:]

    model = ConvNet(jax.random.PRNGKey(cfg.seed))
    schedule = optax.cosine_decay_schedule(cfg.peak, decay_steps=cfg.epochs, alpha=0.0)
    optim = optax.adamw(schedule, weight_decay=1e-4)
    opt_state = optim.init(eqx.filter(model, eqx.is_array))

    def loss_fn(model, xb, yb):
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(xb), yb).mean()

    @eqx.filter_jit
    def step(model, opt_state, xb, yb):
        loss, grads = eqx.filter_value_and_grad(loss_fn)(model, xb, yb)
        updates, opt_state = optim.update(grads, opt_state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), opt_state, loss

    @eqx.filter_jit
    def correct(model, xb, yb):
        return jnp.mean(jnp.argmax(jax.vmap(model)(xb), axis=1) == yb)

    for epoch in range(cfg.epochs):
        losses = []
        for xb, yb in loader(x[tr], y[tr], cfg.batch, rng):
            model, opt_state, loss = step(model, opt_state, xb, yb)
            losses.append(float(loss))
        print(f"epoch {epoch:02d} loss {np.mean(losses):.3f} test {float(correct(model, x[te], y[te])):.3f}")


main(Config())
