import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

digits = load_digits()
pixels = digits.data.astype(np.float32) / 16 - 0.3
target = digits.target
rng = np.random.default_rng(8)
idx = rng.permutation(len(pixels))
train_idx, valid_idx = idx[:1440], idx[1440:]


def init(sizes, key):
    layers = []
    for n, m in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        layers.append((jax.random.normal(sub, (n, m)) * np.sqrt(2.0 / n), jnp.zeros((m,))))
    return layers


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jax.nn.softmax(x @ w + b, axis=0)


def nll(params, x, y):
    p = predict(params, x)
    chosen = p[jnp.arange(len(y)), y]
    return -jnp.mean(jnp.log(chosen + 1e-9))


params = init([64, 64, 32, 10], jax.random.PRNGKey(1))
tx = optax.adam(2e-3)
opt_state = tx.init(params)


@partial(jax.jit, donate_argnums=(0, 1))
def update(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(nll)(params, x, y)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def label_one(params, image):
    return predict(params, image[None, :])[0].argmax()


label_all = jax.jit(jax.vmap(label_one, in_axes=(None, 0)))

batch = 60
for epoch in range(14):
    rng.shuffle(train_idx)
    losses = []
    for start in range(0, len(train_idx), batch):
        b = train_idx[start : start + batch]
        params, opt_state, loss = update(params, opt_state, pixels[b], target[b])
        losses.append(float(loss))
    guess = np.asarray(label_all(params, pixels[valid_idx]))
    print("epoch", epoch, "loss", round(float(np.mean(losses)), 4), "valid acc", round(float((guess == target[valid_idx]).mean()), 4))
