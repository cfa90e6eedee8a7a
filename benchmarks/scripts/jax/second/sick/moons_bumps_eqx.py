"""A small network with Gaussian-bump units; the backward pass is written out to save memory."""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import make_moons


@jax.custom_vjp
def bump(x):
    return jnp.exp(-x * x)


def bump_fwd(x):
    y = jnp.exp(-x * x)
    return y, (x, y)


def bump_bwd(res, g):
    x, y = res
    return (2.0 * x * y * g,)


bump.defvjp(bump_fwd, bump_bwd)


class BumpNet(eqx.Module):
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    out: eqx.nn.Linear

    def __init__(self, width, key):
        a, b, c = jax.random.split(key, 3)
        self.first = eqx.nn.Linear(2, width, key=a)
        self.second = eqx.nn.Linear(width, width, key=b)
        self.out = eqx.nn.Linear(width, 2, key=c)

    def __call__(self, x):
        return self.out(bump(self.second(bump(self.first(x)))))


def cross_entropy(model, x, y):
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def run(width=16, steps=600, batch=64, lr=5e-3, seed=0):
    x, y = make_moons(2000, noise=0.12, random_state=seed)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    x_train, y_train, x_test, y_test = x[:1600], y[:1600], x[1600:], y[1600:]

    model = BumpNet(width, jax.random.PRNGKey(seed))
    optim = optax.adam(lr)
    state = optim.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state, xb, yb):
        loss, grads = eqx.filter_value_and_grad(cross_entropy)(model, xb, yb)
        updates, state = optim.update(grads, state)
        return eqx.apply_updates(model, updates), state, loss

    rng = np.random.default_rng(seed)
    for i in range(steps):
        pick = rng.choice(1600, batch, replace=False)
        model, state, loss = step(model, state, x_train[pick], y_train[pick])
        if i % 50 == 0 or i == steps - 1:
            hit = (jax.vmap(model)(x_test).argmax(-1) == y_test).mean()
            print(f"step {i:4d}  loss {float(loss):.4f}  test accuracy {float(hit):.3f}")


run()
