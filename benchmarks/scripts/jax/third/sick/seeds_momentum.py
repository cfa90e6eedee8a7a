"""Three kinds of wheat told apart by the shape of their kernels."""
import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(11)
NAMES = {"Kama": 1, "Rosa": 2, "Canadian": 3}
MEANS = {"Kama": (14.3, 14.2, 0.880, 5.5, 3.24), "Rosa": (18.3, 16.1, 0.884, 6.1, 3.68), "Canadian": (11.9, 13.2, 0.849, 5.2, 2.85)}
SPREAD = np.array([1.2, 0.6, 0.018, 0.24, 0.18])


def make_table(n_each=240):
    rows, kinds = [], []
    for name, mean in MEANS.items():
        rows.append(RNG.normal(mean, SPREAD, size=(n_each, 5)))
        kinds += [NAMES[name]] * n_each
    return np.concatenate(rows), np.array(kinds)


def init_layer(key, n_in, n_out):
    return {"w": jax.random.normal(key, (n_in, n_out)) * jnp.sqrt(2.0 / n_in), "b": jnp.zeros(n_out)}


def forward(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def cross_entropy(params, x, y):
    target = jax.nn.one_hot(y, len(NAMES))
    return -jnp.mean(jnp.sum(target * jax.nn.log_softmax(forward(params, x)), axis=-1))


@jax.jit
def update(params, velocity, x, y):
    loss, grads = jax.value_and_grad(cross_entropy)(params, x, y)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.02 * g, velocity, grads)
    params = jax.tree.map(lambda p, v: p + v, params, velocity)
    return params, velocity, loss


table, kinds = make_table()
order = RNG.permutation(len(table))
table, kinds = table[order], kinds[order]
train, test = slice(0, 540), slice(540, None)
mean, std = table[train].mean(0), table[train].std(0)
x = ((table - mean) / std).astype(np.float32)
y = kinds.astype(np.int32)

keys = jax.random.split(jax.random.PRNGKey(0), 3)
params = [init_layer(keys[0], 5, 32), init_layer(keys[1], 32, 16), init_layer(keys[2], 16, 3)]
velocity = jax.tree.map(jnp.zeros_like, params)

for epoch in range(40):
    shuffled = RNG.permutation(540)
    losses = []
    for start in range(0, 540, 36):
        rows = shuffled[start : start + 36]
        params, velocity, loss = update(params, velocity, x[rows], y[rows])
        losses.append(float(loss))
    if epoch % 5 == 4:
        guess = jnp.argmax(forward(params, x[test]), axis=1)
        print(f"epoch {epoch + 1:2d}  loss {np.mean(losses):.4f}  accuracy {float(jnp.mean(guess == y[test])):.3f}")
