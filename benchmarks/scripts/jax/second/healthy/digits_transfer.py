"""First an autoencoder on all digits without labels, then a classifier on its (kept fixed) encoder with 600 labelled images."""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)
x = ((x - x.mean()) / x.std()).astype(np.float32)
rng = np.random.default_rng(6)
order = rng.permutation(len(x))
x, y = x[order], y[order]
x_pool, x_lab, y_lab, x_test, y_test = x[:1397], x[:600], y[:600], x[1397:], y[1397:]

he = jax.nn.initializers.he_normal()


def dense(key, a, b):
    return {"w": he(key, (a, b)), "b": jnp.zeros(b)}


def lin(p, x):
    return x @ p["w"] + p["b"]


def encoder(p, x):
    return jax.nn.relu(lin(p["e2"], jax.nn.relu(lin(p["e1"], x))))


k = jax.random.split(jax.random.PRNGKey(0), 5)
enc = {"e1": dense(k[0], 64, 96), "e2": dense(k[1], 96, 48)}
dec = dense(k[2], 48, 64)


def rebuild(p, xb):
    return jnp.mean((lin(p["dec"], encoder(p["enc"], xb)) - xb) ** 2)


pre = {"enc": enc, "dec": dec}
tx = optax.adam(2e-3)
st = tx.init(pre)


@jax.jit
def pre_step(p, st, xb):
    loss, g = jax.value_and_grad(rebuild)(p, xb)
    u, st = tx.update(g, st)
    return optax.apply_updates(p, u), st, loss


for e in range(10):
    losses = []
    for b in np.array_split(rng.permutation(len(x_pool)), 22):
        pre, st, loss = pre_step(pre, st, x_pool[b])
        losses.append(float(loss))
    print(f"pretrain {e} mse {np.mean(losses):.4f}")

params = {"encoder": pre["enc"], "head": {"h1": dense(k[3], 48, 32), "h2": dense(k[4], 32, 10)}}
labels = {"encoder": "frozen", "head": "train"}
tx2 = optax.multi_transform({"train": optax.adamw(3e-3, weight_decay=1e-2), "frozen": optax.set_to_zero()}, labels)
st2 = tx2.init(params)


def classify(p, xb):
    h = encoder(p["encoder"], xb)
    return lin(p["head"]["h2"], jax.nn.relu(lin(p["head"]["h1"], h)))


@jax.jit
def tune(p, st, xb, yb):
    fn = lambda q: optax.softmax_cross_entropy_with_integer_labels(classify(q, xb), yb).mean()
    loss, g = jax.value_and_grad(fn)(p)
    u, st = tx2.update(g, st, p)
    return optax.apply_updates(p, u), st, loss


for e in range(20):
    losses = []
    for b in np.array_split(rng.permutation(600), 15):
        params, st2, loss = tune(params, st2, x_lab[b], y_lab[b])
        losses.append(float(loss))
    if e % 4 == 0:
        acc = (np.asarray(classify(params, x_test)).argmax(1) == y_test).mean()
        print(f"finetune {e:2d} loss {np.mean(losses):.4f} test acc {acc:.3f}")
