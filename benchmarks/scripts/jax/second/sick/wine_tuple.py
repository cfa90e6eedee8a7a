import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

np.random.seed(0)
data = load_wine()
x_train, x_test, y_train, y_test = train_test_split(data.data, data.target, test_size=0.3, random_state=0, stratify=data.target)
scaler = StandardScaler().fit(x_train)
x_train = jnp.asarray(scaler.transform(x_train), dtype=jnp.float32)
x_test = jnp.asarray(scaler.transform(x_test), dtype=jnp.float32)


def init_params(key, sizes=(13, 24, 24, 3)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": jax.nn.initializers.he_normal()(k, (a, b)), "bias": jnp.zeros(b)}
        for k, a, b in zip(keys, sizes[:-1], sizes[1:])
    ]


def forward(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["kernel"] + layer["bias"])
    return x @ last["kernel"] + last["bias"]


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, x), y).mean()


grad_fn = jax.jit(jax.value_and_grad(loss_fn))
params = init_params(jax.random.PRNGKey(17))
optimizer = optax.adam(learning_rate=3e-3)
opt_state = optimizer.init(params)

batch_size = 12
for epoch in range(18):
    order = np.random.permutation(len(x_train))
    epoch_loss = 0.0
    n_batches = 0
    for i in range(0, len(order) - batch_size + 1, batch_size):
        idx = order[i : i + batch_size]
        loss, grads = grad_fn(params, x_train[idx], y_train[idx])
        updates, opt_state = optimizer.update(grads, opt_state, params)
        optax.apply_updates(params, updates)
        epoch_loss += float(loss)
        n_batches += 1
    if (epoch + 1) % 3 == 0:
        pred = forward(params, x_test).argmax(axis=1)
        print(f"epoch {epoch + 1}: loss {epoch_loss / n_batches:.4f}, test accuracy {float((pred == y_test).mean()):.3f}")
