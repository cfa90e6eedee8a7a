import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split


def glorot(key, n_in, n_out):
    limit = np.sqrt(6 / (n_in + n_out))
    return jax.random.uniform(key, (n_in, n_out), minval=-limit, maxval=limit)


def init_network(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(glorot(k, m, n), jnp.zeros(n)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def logits(network, x):
    for w, b in network[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = network[-1]
    return (x @ w + b).squeeze(-1)


def loss(network, x, y):
    z = logits(network, x)
    return jnp.mean(jax.nn.softplus(z) - y * z)


@jax.jit
def sgd_momentum(network, velocity, x, y, lr=0.05, beta=0.9):
    value, grads = jax.value_and_grad(loss)(network, x, y)
    velocity = jax.tree.map(lambda v, g: beta * v + g, velocity, grads)
    network = jax.tree.map(lambda p, v: p - lr * v, network, velocity)
    return network, velocity, value


x, y = load_breast_cancer(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y.astype(np.float32), test_size=0.2, random_state=6)
mean, std = x_train.mean(0), x_train.std(0)
x_train, x_test = ((x_train - mean) / std).astype(np.float32), ((x_test - mean) / std).astype(np.float32)

network = init_network(jax.random.PRNGKey(6), [30, 12, 1])
velocity = jax.tree.map(jnp.zeros_like, network)
rng = np.random.default_rng(6)
for epoch in range(18):
    perm = rng.permutation(len(x_train))
    losses = []
    for i in range(0, 448, 32):
        idx = perm[i : i + 32]
        network, velocity, value = sgd_momentum(network, velocity, x_train[idx], y_train[idx])
        losses.append(float(value))
    accuracy = np.mean((np.asarray(logits(network, x_test)) > 0) == y_test)
    print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f}, test accuracy {accuracy:.4f}")
