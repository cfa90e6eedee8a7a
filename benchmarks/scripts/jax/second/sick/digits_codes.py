"""Compress digits to a short code and decode it again; how well can the picture be rebuilt?"""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

CODE = 10


def glorot(key, n_in, n_out):
    return jax.random.normal(key, (n_in, n_out)) * jnp.sqrt(2.0 / (n_in + n_out))


def init(key):
    k = jax.random.split(key, 4)
    return {
        "encoder": {"w1": glorot(k[0], 64, 48), "b1": jnp.zeros(48), "w2": glorot(k[1], 48, CODE), "b2": jnp.zeros(CODE)},
        "decoder": {"w1": glorot(k[2], CODE, 48), "b1": jnp.zeros(48), "w2": glorot(k[3], 48, 64), "b2": jnp.zeros(64)},
    }


def encode(p, x):
    h = jnp.tanh(x @ p["w1"] + p["b1"])
    h = h @ p["w2"] + p["b2"]
    return (h > 0).astype(jnp.float32)


def decode(p, code):
    h = jnp.tanh(code @ p["w1"] + p["b1"])
    return h @ p["w2"] + p["b2"]


def reconstruction(params, x):
    code = encode(params["encoder"], x)
    return jnp.mean((decode(params["decoder"], code) - x) ** 2)


def main():
    x = load_digits().data.astype(np.float32)
    x = x / 16.0 - x.mean(axis=0) / 16.0
    rng = np.random.default_rng(2)
    rng.shuffle(x)
    train, test = x[:1500], x[1500:]
    params = init(jax.random.PRNGKey(3))
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
    opt_state = tx.init(params)

    @jax.jit
    def train_step(params, opt_state, xb):
        loss, grads = jax.value_and_grad(reconstruction)(params, xb)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    test_loss = jax.jit(reconstruction)
    print("variance per pixel", float(test.var(axis=0).mean()))
    for epoch in range(30):
        order = rng.permutation(len(train))
        total = 0.0
        for i in range(0, len(train), 50):
            params, opt_state, loss = train_step(params, opt_state, train[order[i : i + 50]])
            total += float(loss)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: train mse {total / 30:.5f}  test mse {float(test_loss(params, test)):.5f}")


if __name__ == "__main__":
    main()
