import jax
import jax.numpy as jnp
import optax
from jax import lax, random
from sklearn.datasets import load_digits

N_TRAIN, BATCH, EPOCHS, RATE = 1408, 64, 14, 0.3

data = load_digits()
perm = random.permutation(random.key(123), len(data.data))
X = jnp.asarray(data.data / 16.0, jnp.float32)[perm]
Y = jnp.asarray(data.target)[perm]
X_train, Y_train, X_val, Y_val = X[:N_TRAIN], Y[:N_TRAIN], X[N_TRAIN:], Y[N_TRAIN:]

tx = optax.adam(2e-3)


def init(key, sizes=(64, 100, 100, 10)):
    params = []
    for m, n in zip(sizes, sizes[1:]):
        key, sub = random.split(key)
        params.append((random.normal(sub, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n)))
    return params


def net(params, x, key=None):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
        if key is not None:
            key, sub = random.split(key)
            keep = random.bernoulli(sub, 1 - RATE, x.shape)
            x = jnp.where(keep, x / (1 - RATE), 0)
    w, b = params[-1]
    return x @ w + b


def loss_fn(params, x, y, key=None):
    return optax.softmax_cross_entropy_with_integer_labels(net(params, x, key), y).mean()


@jax.jit
def epoch_fn(params, opt_state, key):
    shuffle_key, noise_key = random.split(key)
    order = random.permutation(shuffle_key, N_TRAIN).reshape(-1, BATCH)

    def body(carry, inputs):
        params, opt_state = carry
        idx, k = inputs
        loss, grads = jax.value_and_grad(loss_fn)(params, X_train[idx], Y_train[idx], k)
        updates, opt_state = tx.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    keys = random.split(noise_key, len(order))
    (params, opt_state), losses = lax.scan(body, (params, opt_state), (order, keys))
    return params, opt_state, losses


params = init(random.key(4))
opt_state = tx.init(params)
for epoch in range(EPOCHS):
    params, opt_state, losses = epoch_fn(params, opt_state, random.key(1000 + epoch))
    val_acc = jnp.mean(net(params, X_val).argmax(1) == Y_val)
    print(f"epoch {epoch:2d} train {losses.mean():.4f} val {loss_fn(params, X_val, Y_val):.4f} acc {val_acc:.4f}")
