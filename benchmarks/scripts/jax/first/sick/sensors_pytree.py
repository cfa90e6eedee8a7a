import jax
import jax.numpy as jnp
import numpy as np
import optax

# Pairs of stations: predict the travel time from features of both ends.
rng = np.random.default_rng(17)
N, D = 3000, 6
start = rng.normal(size=(N, D)).astype(np.float32)
end = rng.normal(size=(N, D)).astype(np.float32)
same = rng.random(N) < 0.05
end[same] = start[same]
mixing = rng.normal(size=(D, 3)).astype(np.float32) / np.sqrt(D)
time = np.linalg.norm((start - end) @ mixing, axis=1) * (1 + 0.05 * rng.normal(size=N))
time = time.astype(np.float32)


def dense(key, n_in, n_out):
    return {"w": jax.nn.initializers.glorot_uniform()(key, (n_in, n_out)), "b": jnp.zeros((n_out,))}


def embed(layers, x):
    x = jax.nn.elu(x @ layers[0]["w"] + layers[0]["b"])
    return x @ layers[1]["w"] + layers[1]["b"]


def distance(layers, a, b):
    gap = jnp.sum((embed(layers, a) - embed(layers, b)) ** 2, axis=-1)
    return jnp.where(gap > 0, jnp.sqrt(gap), 0.0)


def objective(layers, a, b, t):
    return optax.huber_loss(distance(layers, a, b), t).mean()


tx = optax.adam(2e-3)


@jax.jit
def fit_batch(layers, opt_state, a, b, t):
    value, grads = jax.value_and_grad(objective)(layers, a, b, t)
    updates, opt_state = tx.update(grads, opt_state, layers)
    return optax.apply_updates(layers, updates), opt_state, value


k1, k2 = jax.random.split(jax.random.PRNGKey(17))
layers = [dense(k1, D, 32), dense(k2, 32, 4)]
opt_state = tx.init(layers)
n_train = 2400
for epoch in range(8):
    order = rng.permutation(n_train)
    total = 0.0
    for chunk in np.split(order, n_train // 48):
        layers, opt_state, value = fit_batch(layers, opt_state, start[chunk], end[chunk], time[chunk])
        total += float(value) * len(chunk)
    test = objective(layers, start[n_train:], end[n_train:], time[n_train:])
    print(f"epoch {epoch + 1}: train {total / n_train:.4f}, test {test:.4f}")
