from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler


def init_mlp(key, sizes):
    params = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({"w": jax.random.normal(sub, (n_in, n_out)) * jnp.sqrt(2.0 / n_in), "b": jnp.zeros(n_out)})
    return params


def forward(params, x):
    *hidden, last = params
    for p in hidden:
        x = jax.nn.relu(x @ p["w"] + p["b"])
    return x @ last["w"] + last["b"]


def mse(params, x, y):
    pred = forward(params, x)
    return jnp.mean((pred - y) ** 2)


@partial(jax.jit, static_argnums=0)
def step(tx, params, state, x, y):
    value, grads = jax.value_and_grad(mse)(params, x, y)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def r2(params, x, y):
    pred = np.asarray(forward(params, x)).ravel()
    y = np.asarray(y)
    return 1 - ((pred - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def main():
    x, y = load_diabetes(return_X_y=True)
    x = StandardScaler().fit_transform(x).astype(np.float32)
    y = ((y - y.mean()) / y.std()).astype(np.float32)
    rng = np.random.default_rng(11)
    order = rng.permutation(len(x))
    train, test = order[:352], order[352:]

    params = init_mlp(jax.random.key(1), (10, 24, 1))
    tx = optax.adam(3e-3)
    state = tx.init(params)
    history = []
    for epoch in range(25):
        rng.shuffle(train)
        for batch in train.reshape(-1, 32):
            params, state, value = step(tx, params, state, x[batch], y[batch])
            history.append(float(value))
        if epoch % 5 == 4:
            print(f"{epoch + 1:3d}  loss {np.mean(history[-11:]):.4f}  R2 on test {r2(params, x[test], y[test]):.3f}")


if __name__ == "__main__":
    main()
