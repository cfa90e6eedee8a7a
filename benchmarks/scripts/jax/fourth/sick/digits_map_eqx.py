"""Neural multidimensional scaling: a net lays the digits out in a plane so that
distances in the plane are those in pixel space."""
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits


def pairwise(points):
    diff = points[:, None, :] - points[None, :, :]
    return jnp.sqrt(jnp.sum(diff**2, axis=-1))


class Mapper(eqx.Module):
    net: eqx.nn.MLP

    def __init__(self, key):
        self.net = eqx.nn.MLP(64, 2, width_size=64, depth=2, activation=jax.nn.gelu, key=key)

    def __call__(self, x):
        return self.net(x)


def stress(model, x, wanted):
    got = pairwise(jax.vmap(model)(x))
    return jnp.sum((got - wanted) ** 2) / jnp.sum(wanted**2)


def distances(x):
    gram = x @ x.T
    norms = np.diag(gram)
    return np.sqrt(np.maximum(norms[:, None] + norms[None, :] - 2 * gram, 0.0)).astype(np.float32)


def make_step(optimizer):
    @eqx.filter_jit
    def step(model, state, x, wanted):
        value, grads = eqx.filter_value_and_grad(stress)(model, x, wanted)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    return step


def main(seed=8, epochs=40, batch=100):
    rng = np.random.default_rng(seed)
    x = load_digits().data.astype(np.float32)
    x = x[rng.permutation(len(x))]
    x = (x - x[:1400].mean()) / x[:1400].std()
    train, held_out = x[:1400], x[1400:]
    scale = distances(train).mean()
    model = Mapper(jax.random.PRNGKey(seed))
    optimizer = optax.adam(optax.cosine_decay_schedule(2e-3, epochs * len(train) // batch))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    step = make_step(optimizer)
    check = eqx.filter_jit(stress)
    wanted_out = distances(held_out) / scale
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(train))
        values = []
        for i in range(0, len(train), batch):
            xb = train[order[i : i + batch]]
            model, state, value = step(model, state, xb, distances(xb) / scale)
            values.append(float(value))
        if epoch % 8 == 0 or epoch == 1:
            print(f"epoch {epoch:3d}: stress {np.mean(values):.4f}, held out {float(check(model, held_out, wanted_out)):.4f}")


main()
