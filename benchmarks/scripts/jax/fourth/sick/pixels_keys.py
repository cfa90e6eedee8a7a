"""MLP on the 8 x 8 digits, everything in jax.numpy, parameters as a list of dicts."""
import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--widths", type=int, nargs="+", default=[64, 64, 32, 10])
parser.add_argument("--seed", type=int, default=4)
args = parser.parse_args()


def init(key, widths):
    layers = []
    for k, fan_in, fan_out in zip(jax.random.split(key, len(widths) - 1), widths[:-1], widths[1:]):
        w = jax.random.normal(k, (fan_in, fan_out)) * jnp.sqrt(2.0 / fan_in)
        layers.append({"w": w, "b": jnp.zeros(fan_out)})
    return layers


def forward(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def cross_entropy(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, x), y).mean()


def draw(key, x, y, size):
    rows = jax.random.choice(key, len(x), (size,), replace=False)
    return x[rows], y[rows]


def load(seed):
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x = jnp.asarray((x[order] / 16.0 - 0.305) / 0.376, jnp.float32)
    y = jnp.asarray(y[order], jnp.int32)
    return (x[:1300], y[:1300]), (x[1300:], y[1300:])


optimizer = optax.adamw(args.lr, weight_decay=1e-2)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(cross_entropy)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


@jax.jit
def evaluate(params, x, y):
    logits = forward(params, x)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
    return loss, jnp.mean(jnp.argmax(logits, -1) == y)


def main():
    (x_train, y_train), (x_test, y_test) = load(args.seed)
    init_key, data_key = jax.random.split(jax.random.key(args.seed))
    params = init(init_key, args.widths)
    opt_state = optimizer.init(params)
    running = []
    for step in range(1, args.steps + 1):
        xb, yb = draw(data_key, x_train, y_train, args.batch)
        params, opt_state, loss = train_step(params, opt_state, xb, yb)
        running.append(float(loss))
        if step % 100 == 0:
            test_loss, acc = evaluate(params, x_test, y_test)
            print(f"step {step:4d}  train {np.mean(running):.4f}  test {float(test_loss):.4f}  acc {float(acc):.3f}")
            running = []


if __name__ == "__main__":
    main()
