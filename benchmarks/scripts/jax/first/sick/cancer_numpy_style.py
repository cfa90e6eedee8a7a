import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit
from sklearn.datasets import load_breast_cancer

# ---- data -----------------------------------------------------------------
data = load_breast_cancer()
X = (data.data - data.data.mean(0)) / data.data.std(0)
Y = data.target.astype(np.float32)
rng = np.random.RandomState(42)
shuffled = rng.permutation(len(X))
X, Y = X[shuffled].astype(np.float32), Y[shuffled]
X_train, Y_train, X_test, Y_test = X[:455], Y[:455], X[455:], Y[455:]

# ---- network --------------------------------------------------------------
n_hidden = 16
params = {
    "W1": jnp.zeros((30, n_hidden)),
    "b1": jnp.zeros(n_hidden),
    "W2": jnp.zeros((n_hidden, 1)),
    "b2": jnp.zeros(1),
}


def predict(params, x):
    hidden = jnp.maximum(0.0, x @ params["W1"] + params["b1"])
    return (hidden @ params["W2"] + params["b2"])[:, 0]


def loss(params, x, y):
    z = predict(params, x)
    return jnp.mean(jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z))))


@jit
def update(params, x, y, lr):
    g = grad(loss)(params, x, y)
    return jax.tree.map(lambda p, dp: p - lr * dp, params, g)


# ---- training -------------------------------------------------------------
losses = []
for epoch in range(20):
    idx = rng.permutation(len(X_train))
    for i in range(0, len(idx), 35):
        batch = idx[i : i + 35]
        params = update(params, X_train[batch], Y_train[batch], 0.1)
    losses.append(float(loss(params, X_train, Y_train)))
    acc = np.mean((np.asarray(predict(params, X_test)) > 0) == Y_test)
    print("epoch", epoch, "loss", round(losses[-1], 4), "test accuracy", round(float(acc), 3))
