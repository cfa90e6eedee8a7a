import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax


def spirals(n, noise, rng):
    theta = np.sqrt(rng.random(n)) * 1.5 * np.pi
    label = rng.integers(0, 2, n)
    r = theta + np.pi * label
    xy = np.stack([r * np.cos(theta + np.pi * label), r * np.sin(theta + np.pi * label)], axis=1)
    xy = xy + noise * rng.normal(size=xy.shape)
    return (xy / xy.std()).astype(np.float32), label.astype(np.float32)


def dataloader(x, y, batch_size, rng):
    while True:
        perm = rng.permutation(len(x))
        for i in range(0, len(x) - batch_size + 1, batch_size):
            yield x[perm[i : i + batch_size]], y[perm[i : i + batch_size]]


def loss_fn(model, x, y):
    logit = jax.vmap(model)(x)
    return optax.sigmoid_binary_cross_entropy(logit, y).mean()


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=2.0)
parser.add_argument("--steps", type=int, default=500)
parser.add_argument("--width", type=int, default=48)
parser.add_argument("--seed", type=int, default=8)
args = parser.parse_args()

rng = np.random.default_rng(args.seed)
x_train, y_train = spirals(1600, 0.15, rng)
x_test, y_test = spirals(400, 0.15, rng)
model = eqx.nn.MLP(2, "scalar", args.width, depth=3, activation=jax.nn.relu, key=jr.key(args.seed))
optim = optax.sgd(args.lr, momentum=0.9)
opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def make_step(model, opt_state, x, y):
    loss, grads = eqx.filter_value_and_grad(loss_fn)(model, x, y)
    updates, opt_state = optim.update(grads, opt_state, model)
    return eqx.apply_updates(model, updates), opt_state, loss


for step, (xb, yb) in zip(range(args.steps), dataloader(x_train, y_train, 64, rng)):
    model, opt_state, loss = make_step(model, opt_state, xb, yb)
    if step % 50 == 0 or step == args.steps - 1:
        acc = jnp.mean((jax.vmap(model)(x_test) > 0) == y_test)
        print(f"step {step:4d}  loss {loss:.4f}  test acc {acc:.3f}")
