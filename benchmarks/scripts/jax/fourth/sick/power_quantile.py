# How much power must be kept ready so that it suffices in nine hours out of ten?
# Quantile regression; the loss has a kink, so its subgradient is written by hand.
import jax
import jax.numpy as jnp
import numpy as np
import optax

Q = 0.9


@jax.custom_vjp
def pinball(pred, target):
    gap = target - pred
    return jnp.mean(jnp.where(gap > 0, Q * gap, (Q - 1) * gap))


def pinball_fwd(pred, target):
    return pinball(pred, target), (pred, target)


def pinball_bwd(saved, g):
    pred, target = saved
    slope = jnp.where(target > pred, Q - 1, Q)
    return g * slope / pred.size, None


pinball.defvjp(pinball_fwd, pinball_bwd)


def make_hours(n, seed):
    rng = np.random.default_rng(seed)
    hour, temperature, wind = rng.uniform(0, 24, n), rng.normal(9, 7, n), rng.gamma(2.0, 2.5, n)
    load = 3.0 + np.sin(hour / 24 * 2 * np.pi - 1.5) + 0.08 * np.maximum(15 - temperature, 0) - 0.03 * wind
    load += rng.normal(0, 1, n) * (0.25 + 0.03 * wind)
    features = np.stack([np.sin(hour / 12 * np.pi), np.cos(hour / 12 * np.pi), (temperature - 9) / 7, (wind - 5) / 3.5], 1)
    return features.astype(np.float32), ((load - 3.4) / 1.1).astype(np.float32)


def init(key, sizes=(4, 32, 32, 1)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def objective(params, x, y):
    return pinball(predict(params, x), y)


def train(x, y, x_val, y_val, epochs=30, batch=100, seed=12):
    params = init(jax.random.key(seed))
    tx = optax.adam(optax.cosine_decay_schedule(3e-3, epochs * len(x) // batch))
    state = tx.init(params)
    rng = np.random.default_rng(seed)

    @jax.jit
    def step(params, state, xb, yb):
        loss, grads = jax.value_and_grad(objective)(params, xb, yb)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    for epoch in range(1, epochs + 1):
        losses = []
        for rows in rng.permutation(len(x)).reshape(-1, batch):
            params, state, loss = step(params, state, x[rows], y[rows])
            losses.append(float(loss))
        if epoch % 5 == 0:
            ahead = predict(params, x_val)
            print(
                f"epoch {epoch:3d}  loss {np.mean(losses):.4f}  val {float(pinball(ahead, y_val)):.4f}"
                f"  enough in {float(jnp.mean(y_val <= ahead)):.1%} of the hours"
            )
    return params


x, y = make_hours(4000, seed=1)
x_val, y_val = make_hours(1000, seed=2)
train(x, y, x_val, y_val)
