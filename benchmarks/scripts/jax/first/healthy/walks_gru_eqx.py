"""Which way does a noisy walk drift? Small batches, so the loss jumps about."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

LENGTH, BATCH, STEPS = 24, 8, 700


def walks(key, n):
    k1, k2 = jr.split(key)
    label = jr.bernoulli(k1, 0.5, (n,))
    drift = jnp.where(label, 0.35, -0.35)
    steps = jr.normal(k2, (n, LENGTH)) + drift[:, None]
    return steps[..., None], label.astype(jnp.float32)


class RNN(eqx.Module):
    cell: eqx.nn.GRUCell
    linear: eqx.nn.Linear

    def __init__(self, hidden, *, key):
        ckey, lkey = jr.split(key)
        self.cell = eqx.nn.GRUCell(1, hidden, key=ckey)
        self.linear = eqx.nn.Linear(hidden, "scalar", key=lkey)

    def __call__(self, seq):
        def f(carry, x):
            return self.cell(x, carry), None

        out, _ = jax.lax.scan(f, jnp.zeros(self.cell.hidden_size), seq)
        return self.linear(out)


@eqx.filter_value_and_grad
def loss_and_grad(model, x, y):
    return optax.sigmoid_binary_cross_entropy(jax.vmap(model)(x), y).mean()


@eqx.filter_jit
def train_step(model, opt_state, key):
    x, y = walks(key, BATCH)
    loss, grads = loss_and_grad(model, x, y)
    updates, opt_state = optim.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss


@eqx.filter_jit
def test(model, x, y):
    return jnp.mean((jax.vmap(model)(x) > 0) == y)


key, model_key, test_key = jr.split(jr.PRNGKey(9), 3)
model = RNN(16, key=model_key)
x_test, y_test = walks(test_key, 500)
optim = optax.chain(optax.clip(1.0), optax.adam(2e-3))
opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))
smooth = 0.7
for i in range(STEPS):
    key, sub = jr.split(key)
    model, opt_state, loss = train_step(model, opt_state, sub)
    smooth = 0.98 * smooth + 0.02 * float(loss)
    if (i + 1) % 100 == 0:
        print(f"{i + 1:4d} loss {loss:.3f} smoothed {smooth:.3f} test acc {test(model, x_test, y_test):.3f}")
