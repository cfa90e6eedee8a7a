import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


@dataclasses.dataclass
class Config:
    epochs: int = 25
    batch: int = 128
    peak: float = 3e-3
    warmup: int = 100
    hidden: int = 96


class Classifier(nnx.Module):
    def __init__(self, hidden, rngs):
        self.first = nnx.Linear(64, hidden, rngs=rngs)
        self.second = nnx.Linear(hidden, hidden, rngs=rngs)
        self.out = nnx.Linear(hidden, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.gelu(self.first(x))
        x = nnx.gelu(self.second(x))
        return self.out(x)


def loss_fn(params, graphdef, x, y):
    logits = nnx.merge(graphdef, params)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def run_epoch(params, tx, step, data, rng, cfg):
    x, y = data
    opt_state = tx.init(params)
    losses = []
    order = rng.permutation(len(x))
    for i in range(0, len(x) - cfg.batch + 1, cfg.batch):
        pick = order[i : i + cfg.batch]
        params, opt_state, loss = step(params, opt_state, x[pick], y[pick])
        losses.append(float(loss))
    return params, np.mean(losses)


def main(cfg):
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32)
    xtr, xte, ytr, yte = train_test_split(images, labels, test_size=0.25, random_state=1, stratify=labels)
    model = Classifier(cfg.hidden, nnx.Rngs(1))
    graphdef, params = nnx.split(model, nnx.Param)
    steps = cfg.epochs * (len(xtr) // cfg.batch)
    schedule = optax.warmup_cosine_decay_schedule(0.0, cfg.peak, cfg.warmup, steps)
    tx = optax.adamw(schedule, weight_decay=1e-4)
    rng = np.random.default_rng(1)

    @jax.jit
    def step(params, opt_state, xb, yb):
        loss, grads = jax.value_and_grad(loss_fn)(params, graphdef, xb, yb)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    for epoch in range(cfg.epochs):
        params, loss = run_epoch(params, tx, step, (xtr, ytr), rng, cfg)
        if epoch % 4 == 0:
            acc = jnp.mean(jnp.argmax(nnx.merge(graphdef, params)(xte), -1) == yte)
            print(f"{epoch:3d}  train loss {loss:.4f}  test accuracy {float(acc):.3f}")


main(Config())
