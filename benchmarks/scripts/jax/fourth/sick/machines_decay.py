import argparse
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import make_classification


def get_args():
    p = argparse.ArgumentParser(description="which of six machines made the part")
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--wd", type=float, default=0.1)
    p.add_argument("--batch", type=int, default=100)
    p.add_argument("--epochs", type=int, default=15)
    return p.parse_args()


def init_params(key, hidden):
    def dense(k, n_in, n_out):
        return {"kernel": jax.nn.initializers.he_normal()(k, (n_in, n_out)), "bias": jnp.zeros(n_out)}

    k1, k2, k3 = jax.random.split(key, 3)
    return {"fc1": dense(k1, 24, hidden), "fc2": dense(k2, hidden, hidden), "fc3": dense(k3, hidden, 6)}


def apply(params, x):
    h = jax.nn.relu(x @ params["fc1"]["kernel"] + params["fc1"]["bias"])
    h = jax.nn.relu(h @ params["fc2"]["kernel"] + params["fc2"]["bias"])
    return h @ params["fc3"]["kernel"] + params["fc3"]["bias"]


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y).mean()


def kernels_only(params):
    return jax.tree.map(lambda p: p.ndim > 1, params)


@partial(jax.jit, static_argnums=0)
def step(tx, params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


@jax.jit
def metrics(params, x, y):
    logits = apply(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), (logits.argmax(1) == y).mean()


def main():
    args = get_args()
    rng = np.random.default_rng(0)
    x, y = make_classification(
        5000, 24, n_informative=10, n_redundant=4, n_classes=6, class_sep=1.6, flip_y=0.02, random_state=0
    )
    x, y = ((x - x[:4000].mean(0)) / x[:4000].std(0)).astype(np.float32), y.astype(np.int32)
    x_train, y_train, x_val, y_val = x[:4000], y[:4000], x[4000:], y[4000:]

    params = init_params(jax.random.PRNGKey(0), args.hidden)
    tx = optax.chain(
        optax.clip_by_global_norm(5.0),
        optax.add_decayed_weights(args.wd, mask=kernels_only),
        optax.sgd(optax.cosine_decay_schedule(args.lr, args.epochs * 4000 // args.batch), momentum=args.momentum),
    )
    state = tx.init(params)
    for epoch in range(args.epochs):
        order = rng.permutation(4000).reshape(-1, args.batch)
        losses = []
        for rows in order:
            params, state, loss = step(tx, params, state, x_train[rows], y_train[rows])
            losses.append(float(loss))
        val_loss, val_acc = metrics(params, x_val, y_val)
        print(f"Epoch {epoch + 1:2d}  train {np.mean(losses):.3f}  val {float(val_loss):.3f}  acc {float(val_acc):.3f}")


if __name__ == "__main__":
    main()
