"""One epoch is one lax.scan over the batches."""

import jax
import jax.numpy as jnp
import optax
from jax import lax, random
from sklearn.datasets import load_digits

BATCH = 50
STEPS = 28
EPOCHS = 15

raw = load_digits()
images = jnp.asarray(raw.data, dtype=jnp.float32) / 16.0
labels = jnp.asarray(raw.target, dtype=jnp.int32)
split = random.permutation(random.PRNGKey(99), len(images))
images, labels = images[split], labels[split]
train_x, test_x = images[:1400], images[1400:]
train_y, test_y = labels[:1400], labels[1400:]

tx = optax.adamw(2e-3, weight_decay=1e-4)


def init(key):
    k1, k2, k3 = random.split(key, 3)
    he = jax.nn.initializers.he_normal()
    return {
        "hidden1": {"kernel": he(k1, (64, 64)), "bias": jnp.zeros(64)},
        "hidden2": {"kernel": he(k2, (64, 64)), "bias": jnp.zeros(64)},
        "out": {"kernel": he(k3, (64, 10)), "bias": jnp.zeros(10)},
    }


def apply(params, x):
    for name in ("hidden1", "hidden2"):
        x = jax.nn.relu(x @ params[name]["kernel"] + params[name]["bias"])
    return x @ params["out"]["kernel"] + params["out"]["bias"]


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y).mean()


def train_batch(carry, batch):
    params, opt_state = carry
    x, y = batch
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = tx.update(grads, opt_state, params)
    return (optax.apply_updates(params, updates), opt_state), loss


@jax.jit
def train_epoch(params, opt_state, key):
    x_key, y_key = random.split(key)
    xs = random.permutation(x_key, train_x).reshape(STEPS, BATCH, -1)
    ys = random.permutation(y_key, train_y).reshape(STEPS, BATCH)
    (params, opt_state), losses = lax.scan(train_batch, (params, opt_state), (xs, ys))
    return params, opt_state, losses


params = init(random.PRNGKey(0))
opt_state = tx.init(params)
key = random.PRNGKey(1)
for epoch in range(EPOCHS):
    key, epoch_key = random.split(key)
    params, opt_state, losses = train_epoch(params, opt_state, epoch_key)
    accuracy = (apply(params, test_x).argmax(-1) == test_y).mean()
    print(f"epoch {epoch:02d}: first {losses[0]:.3f} last {losses[-1]:.3f} mean {losses.mean():.3f} acc {accuracy:.3f}")
