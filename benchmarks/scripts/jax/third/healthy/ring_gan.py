"""A small GAN learns a noisy ring in the plane. Non-saturating loss, two optimisers."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

NOISE = 4
BATCH = 128
rng = np.random.default_rng(0)


def real_points(n):
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = 1.0 + rng.normal(0, 0.08, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32)


def mlp_init(key, sizes):
    layers = []
    for k, a, b in zip(jax.random.split(key, len(sizes) - 1), sizes[:-1], sizes[1:]):
        layers.append({"w": jax.random.normal(k, (a, b)) * jnp.sqrt(2.0 / a), "b": jnp.zeros(b)})
    return layers


def mlp(layers, x):
    for layer in layers[:-1]:
        x = jax.nn.leaky_relu(x @ layer["w"] + layer["b"], 0.2)
    return x @ layers[-1]["w"] + layers[-1]["b"]


def discriminator_loss(d, g, real, z):
    on_real = mlp(d, real)
    on_fake = mlp(d, jax.lax.stop_gradient(mlp(g, z)))
    return jnp.mean(jax.nn.softplus(-on_real)) + jnp.mean(jax.nn.softplus(on_fake))


def generator_loss(g, d, z):
    return jnp.mean(jax.nn.softplus(-mlp(d, mlp(g, z))))


opt_g = optax.adam(1e-3, b1=0.5)
opt_d = optax.adam(1e-3, b1=0.5)


@jax.jit
def step(g, d, sg, sd, real, z1, z2):
    loss_d, grads = jax.value_and_grad(discriminator_loss)(d, g, real, z1)
    updates, sd = opt_d.update(grads, sd)
    d = optax.apply_updates(d, updates)
    loss_g, grads = jax.value_and_grad(generator_loss)(g, d, z2)
    updates, sg = opt_g.update(grads, sg)
    g = optax.apply_updates(g, updates)
    return g, d, sg, sd, loss_g, loss_d


kg, kd = jax.random.split(jax.random.PRNGKey(3))
g, d = mlp_init(kg, [NOISE, 48, 48, 2]), mlp_init(kd, [2, 48, 48, 1])
sg, sd = opt_g.init(g), opt_d.init(d)

for it in range(2500):
    z1, z2 = rng.normal(size=(2, BATCH, NOISE)).astype(np.float32)
    g, d, sg, sd, loss_g, loss_d = step(g, d, sg, sd, real_points(BATCH), z1, z2)
    if it % 500 == 499:
        fake = np.asarray(mlp(g, rng.normal(size=(2000, NOISE)).astype(np.float32)))
        radius = np.hypot(fake[:, 0], fake[:, 1])
        quarters = np.bincount(((np.arctan2(fake[:, 1], fake[:, 0]) + np.pi) / (np.pi / 2)).astype(int) % 4, minlength=4) / 2000
        print(f"{it + 1}: G {float(loss_g):.3f} D {float(loss_d):.3f} radius {radius.mean():.3f} ± {radius.std():.3f} quarters {quarters}")
