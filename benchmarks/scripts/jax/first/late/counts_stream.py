import jax
import jax.numpy as jnp
import numpy as np
import optax

# Photon counts of a detector with 8 channels; the task is the temperature of the source.
CHANNELS = 8


class Detector:
    def __init__(self, seed, exposure=380.0):
        self.rng = np.random.default_rng(seed)
        self.exposure = exposure
        self.position = np.linspace(-1, 1, CHANNELS)

    def read(self, n):
        temperature = self.rng.uniform(-1, 1, n)
        rate = self.exposure * np.exp(-0.5 * (self.position - temperature[:, None]) ** 2 / 0.5)
        return self.rng.poisson(rate).astype(np.float32), temperature.astype(np.float32)


def spectrum(counts):
    logs = jnp.log(counts)
    return logs - logs.mean(axis=-1, keepdims=True)


def init_params(key):
    k1, k2 = jax.random.split(key)
    return {
        "w1": jax.random.normal(k1, (CHANNELS, 32)) / np.sqrt(CHANNELS),
        "b1": jnp.zeros(32),
        "w2": jax.random.normal(k2, (32,)) / np.sqrt(32),
        "b2": jnp.array(0.0),
    }


def model(params, counts):
    h = jnp.tanh(spectrum(counts) @ params["w1"] + params["b1"])
    return h @ params["w2"] + params["b2"]


def loss_fn(params, counts, temperature):
    return jnp.square(model(params, counts) - temperature).mean()


optimizer = optax.adam(2e-3)


@jax.jit
def train_step(params, opt_state, counts, temperature):
    loss, grads = jax.value_and_grad(loss_fn)(params, counts, temperature)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


detector = Detector(seed=5)
params = init_params(jax.random.PRNGKey(5))
opt_state = optimizer.init(params)
mean_loss = None
for i in range(900):
    counts, temperature = detector.read(32)
    params, opt_state, loss = train_step(params, opt_state, counts, temperature)
    mean_loss = loss if mean_loss is None else 0.95 * mean_loss + 0.05 * loss
    if i % 100 == 99:
        print(f"step {i + 1} loss {mean_loss:.5f}")
