"""Autoencoder of digits with a code of six numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits


class Encoder(eqx.Module):
    first: eqx.nn.Linear
    second: eqx.nn.Linear

    def __init__(self, width, code, *, key):
        a, b = jax.random.split(key)
        self.first = eqx.nn.Linear(64, width, key=a)
        self.second = eqx.nn.Linear(width, code, key=b)

    def __call__(self, x):
        return self.second(jax.nn.gelu(self.first(x)))


class Decoder(eqx.Module):
    mlp: eqx.nn.MLP

    def __init__(self, width, code, *, key):
        self.mlp = eqx.nn.MLP(code, 64, width, depth=1, activation=jax.nn.gelu, key=key)

    def __call__(self, z):
        return self.mlp(z)


class Model(eqx.Module):
    encoder: Encoder
    decoder: Decoder

    def __init__(self, *, key):
        k1, k2 = jax.random.split(key)
        self.encoder = Encoder(48, 6, key=k1)
        self.decoder = Decoder(48, 6, key=k2)

    def __call__(self, x):
        z = jax.lax.stop_gradient(self.encoder(x))
        return self.decoder(z), z


@eqx.filter_value_and_grad
def compute_loss(model, x):
    recon, z = jax.vmap(model)(x)
    return jnp.mean(jnp.sum((recon - x) ** 2, axis=-1))


@eqx.filter_jit
def step(model, opt_state, x):
    loss, grads = compute_loss(model, x)
    updates, opt_state = opt.update(grads, opt_state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), opt_state, loss


rng = np.random.default_rng(7)
x = load_digits().data.astype(np.float32) / 16
x = x - x.mean(axis=0)
rng.shuffle(x)
train, test = x[:1500], x[1500:]

model = Model(key=jax.random.key(7))
opt = optax.adam(3e-3)
opt_state = opt.init(eqx.filter(model, eqx.is_array))
for i in range(1, 601):
    batch = train[rng.integers(0, len(train), 64)]
    model, opt_state, loss = step(model, opt_state, batch)
    if i % 100 == 0:
        recon, _ = jax.vmap(model)(test)
        explained = 1 - ((recon - test) ** 2).sum() / (test**2).sum()
        print(f"{i:4d} loss {loss:.3f} explained variance (test) {explained:.3f}")
