"""Tomorrow's temperature anomaly from today's weather (made-up station)."""
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax


def station(n, rng):
    pressure = rng.normal(1013, 8, n)
    wind = rng.gamma(2.0, 2.0, n)
    cloud = rng.uniform(0, 1, n)
    today = rng.normal(9, 6, n)
    day = rng.uniform(0, 365, n)
    season = np.cos(2 * np.pi * (day - 200) / 365)
    tomorrow = 0.7 * today + 3.0 * season * (1 - cloud) - 0.4 * wind * (cloud > 0.5) + 0.08 * (pressure - 1013) + rng.normal(0, 0.5, n)
    return np.stack([pressure, wind, cloud, today, season], 1), tomorrow


class Forecast(eqx.Module):
    mlp: eqx.nn.MLP

    def __init__(self, key):
        self.mlp = eqx.nn.MLP(
            in_size=5,
            out_size=1,
            width_size=48,
            depth=2,
            activation=jax.nn.relu,
            final_activation=jax.nn.relu,
            key=key,
        )

    def __call__(self, x):
        return self.mlp(x)[0]


def mse(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def r2(model, x, y):
    return float(1 - mse(model, x, y) / jnp.var(y))


rng = np.random.default_rng(21)
features, target = station(2400, rng)
features = (features - features[:2000].mean(0)) / features[:2000].std(0)
target = (target - target[:2000].mean()) / target[:2000].std()
x, y = jnp.asarray(features, jnp.float32), jnp.asarray(target, jnp.float32)
x_train, x_test, y_train, y_test = x[:2000], x[2000:], y[:2000], y[2000:]

model = Forecast(jr.PRNGKey(4))
optim = optax.adam(optax.exponential_decay(3e-3, 400, 0.7))
state = optim.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def make_step(model, state, xb, yb):
    loss, grads = eqx.filter_value_and_grad(mse)(model, xb, yb)
    updates, state = optim.update(grads, state, model)
    return eqx.apply_updates(model, updates), state, loss


for step in range(1600):
    rows = rng.integers(0, 2000, 64)
    model, state, loss = make_step(model, state, x_train[rows], y_train[rows])
    if step % 200 == 199:
        print(f"step {step + 1}: loss {float(loss):.4f}  R2 train {r2(model, x_train, y_train):.3f}  test {r2(model, x_test, y_test):.3f}")
