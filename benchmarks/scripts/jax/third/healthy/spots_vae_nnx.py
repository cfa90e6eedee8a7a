"""A variational autoencoder for small pictures in Flax NNX; the weight of the KL term rises slowly."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

LATENT = 3


def blobs(n, seed):
    """One soft spot of varying place and width on 10x10 pixels."""
    rng = np.random.default_rng(seed)
    grid = np.arange(10)
    cx, cy = rng.uniform(2, 7, (2, n, 1, 1))
    width = rng.uniform(1.0, 2.2, (n, 1, 1))
    spot = np.exp(-((grid[None, :, None] - cy) ** 2 + (grid[None, None, :] - cx) ** 2) / (2 * width**2))
    return spot.reshape(n, 100).astype(np.float32)


class VAE(nnx.Module):
    def __init__(self, rngs):
        self.enc = nnx.Linear(100, 64, rngs=rngs)
        self.mu = nnx.Linear(64, LATENT, rngs=rngs)
        self.logvar = nnx.Linear(64, LATENT, rngs=rngs)
        self.dec1 = nnx.Linear(LATENT, 64, rngs=rngs)
        self.dec2 = nnx.Linear(64, 100, rngs=rngs)

    def encode(self, x):
        h = nnx.silu(self.enc(x))
        return self.mu(h), jnp.clip(self.logvar(h), -8.0, 8.0)

    def decode(self, z):
        return self.dec2(nnx.silu(self.dec1(z)))


def elbo_terms(model, x, key):
    mu, logvar = model.encode(x)
    z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
    logits = model.decode(z)
    recon = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1).mean()
    kl = 0.5 * jnp.sum(jnp.exp(logvar) + mu**2 - 1.0 - logvar, axis=-1).mean()
    return recon, kl


@nnx.jit
def train_step(model, optimizer, x, key, beta):
    def loss_fn(m):
        recon, kl = elbo_terms(m, x, key)
        return recon + beta * kl, (recon, kl)

    (_, parts), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)
    optimizer.update(model, grads)
    return parts


x_train, x_test = blobs(3000, 0), blobs(500, 1)
model = VAE(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)
rng = np.random.default_rng(2)
key = jax.random.key(7)
entropy = -np.mean(np.sum(x_test * np.log(x_test + 1e-9) + (1 - x_test) * np.log(1 - x_test + 1e-9), 1))
print(f"entropy of the pictures themselves: {entropy:.2f}")
for step in range(1500):
    key, sub = jax.random.split(key)
    beta = min(1.0, step / 500)
    recon, kl = train_step(model, optimizer, x_train[rng.integers(0, 3000, 100)], sub, beta)
    if step % 250 == 249:
        mu, _ = model.encode(x_test)
        error = np.mean((np.asarray(jax.nn.sigmoid(model.decode(mu))) - x_test) ** 2)
        print(f"step {step + 1}: reconstruction {float(recon):.2f}  kl {float(kl):.2f}  test mse {error:.5f}")
