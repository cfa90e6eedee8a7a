import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_diabetes

# The negative log-likelihood is summed over the batch, as in the derivation; hence the step size.
LEARNING_RATE = 2e-4
BATCH = 64

x, y = load_diabetes(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
y = ((y - y.mean()) / y.std()).astype(np.float32)
rng = np.random.default_rng(2)
order = rng.permutation(len(x))
x, y = x[order], y[order]
x_train, y_train, x_val, y_val = x[:384], y[:384], x[384:], y[384:]


def init(key, width=20):
    k1, k2 = jax.random.split(key)
    return {
        "hidden": (jax.random.normal(k1, (10, width)) / np.sqrt(10), jnp.zeros(width)),
        "mean": (jax.random.normal(k2, (width,)) / np.sqrt(width), jnp.zeros(())),
        "log_sigma": jnp.zeros(()),
    }


def predict(params, x):
    w, b = params["hidden"]
    v, c = params["mean"]
    return jnp.tanh(x @ w + b) @ v + c


def nll(params, x, y):
    residual = (y - predict(params, x)) * jnp.exp(-params["log_sigma"])
    return jnp.sum(0.5 * residual**2 + params["log_sigma"])


optimizer = optax.sgd(LEARNING_RATE, momentum=0.9)


@jax.jit
def step(params, state, x, y):
    loss, grads = jax.value_and_grad(nll)(params, x, y)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


params = init(jax.random.PRNGKey(2))
state = optimizer.init(params)
for epoch in range(50):
    for idx in rng.permutation(384).reshape(-1, BATCH):
        params, state, loss = step(params, state, x_train[idx], y_train[idx])
    if epoch % 10 == 9:
        rmse = jnp.sqrt(jnp.mean((predict(params, x_val) - y_val) ** 2))
        train = nll(params, x_train, y_train) / 384
        val = nll(params, x_val, y_val) / len(x_val)
        print(f"epoch {epoch + 1} nll {train:.4f} val nll {val:.4f} val rmse {rmse:.4f}")
