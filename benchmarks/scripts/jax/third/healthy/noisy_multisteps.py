# Regression with much noise, micro-batches of 4 gathered by optax.MultiSteps.
import jax
import jax.numpy as jnp
import numpy as np
import optax

MICRO, GATHER = 4, 8

rng = np.random.default_rng(31)
x = rng.uniform(-1, 1, (2600, 6)).astype(np.float32)
clean = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] - 0.5 * x[:, 3] ** 2
y = (clean + rng.normal(0, 0.7, len(x))).astype(np.float32)
y = y - y[:2000].mean()
clean = clean - clean[:2000].mean()


def block(key, a, b):
    return jax.random.normal(key, (a, b)) / np.sqrt(a), jnp.zeros(b)


k = jax.random.split(jax.random.key(1), 3)
params = {"in": block(k[0], 6, 32), "mid": block(k[1], 32, 32), "out": block(k[2], 32, 1)}


def model(params, x):
    w, b = params["in"]
    h = jnp.tanh(x @ w + b)
    w, b = params["mid"]
    h = h + jnp.tanh(h @ w + b)
    w, b = params["out"]
    return (h @ w + b).squeeze(-1)


def huber(params, x, y):
    return optax.huber_loss(model(params, x), y, delta=1.5).mean()


tx = optax.MultiSteps(optax.chain(optax.clip_by_global_norm(2.0), optax.adamw(2e-3, weight_decay=1e-3)), every_k_schedule=GATHER)
state = tx.init(params)


@jax.jit
def micro_step(params, state, x, y):
    loss, grads = jax.value_and_grad(huber)(params, x, y)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


for epoch in range(12):
    order = rng.permutation(2000)
    losses = []
    for i in range(0, 2000, MICRO):
        rows = order[i : i + MICRO]
        params, state, loss = micro_step(params, state, x[rows], y[rows])
        losses.append(loss)
    pred = np.asarray(model(params, x[2000:]))
    signal = 1 - np.mean((pred - clean[2000:]) ** 2) / np.var(clean[2000:])
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}  share of the true signal explained {signal:.3f}")
