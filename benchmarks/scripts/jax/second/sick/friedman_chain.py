import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import make_friedman1

parser = argparse.ArgumentParser(description="MLP regression on the Friedman surface")
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--decay", type=float, default=0.3)
parser.add_argument("--epochs", type=int, default=25)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

x, y = make_friedman1(n_samples=2400, n_features=10, noise=0.5, random_state=args.seed)
x = (x - 0.5) / np.sqrt(1 / 12)
train_x, train_y = x[:2000].astype(np.float32), y[:2000]
test_x, test_y = x[2000:].astype(np.float32), y[2000:]
mu, sd = train_y.mean(), train_y.std()
train_y = ((train_y - mu) / sd).astype(np.float32)
test_y = ((test_y - mu) / sd).astype(np.float32)

init = jax.nn.initializers.he_normal()
k = jax.random.split(jax.random.PRNGKey(args.seed), 3)
params = {
    "in": {"w": init(k[0], (10, 64)), "b": jnp.zeros(64)},
    "mid": {"w": init(k[1], (64, 64)), "b": jnp.zeros(64)},
    "out": {"w": init(k[2], (64, 1)) * 0.5, "b": jnp.zeros(1)},
}

optimizer = optax.chain(
    optax.add_decayed_weights(args.decay, mask=lambda p: jax.tree.map(lambda a: a.ndim > 1, p)),
    optax.sgd(args.lr, momentum=0.8),
)
state = optimizer.init(params)


def net(p, x):
    h = jax.nn.silu(x @ p["in"]["w"] + p["in"]["b"])
    h = jax.nn.silu(h @ p["mid"]["w"] + p["mid"]["b"])
    return jnp.squeeze(h @ p["out"]["w"] + p["out"]["b"], axis=-1)


def mse(p, x, y):
    return jnp.mean(jnp.square(net(p, x) - y))


@jax.jit
def train_step(p, s, x, y):
    value, grads = jax.value_and_grad(mse)(p, x, y)
    updates, s = optimizer.update(grads, s, p)
    return optax.apply_updates(p, updates), s, value


eval_mse = jax.jit(mse)
rng = np.random.default_rng(args.seed)
for epoch in range(args.epochs):
    order = rng.permutation(2000)
    values = []
    for chunk in np.split(order, 40):
        params, state, value = train_step(params, state, train_x[chunk], train_y[chunk])
        values.append(float(value))
    print(f"epoch {epoch:2d}  train mse {np.mean(values):.4f}  test mse {float(eval_mse(params, test_x, test_y)):.4f}")
