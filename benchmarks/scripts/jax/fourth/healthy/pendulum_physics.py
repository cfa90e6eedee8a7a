"""A net that solves the damped pendulum's equation: no data, only the equation at fixed
points of time, and the start of the motion built into the ansatz."""
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

DAMPING, SPAN, POINTS, STEPS, CHUNK = 0.3, 6.0, 128, 5000, 500


class Motion(eqx.Module):
    net: eqx.nn.MLP

    def __init__(self, key):
        self.net = eqx.nn.MLP("scalar", "scalar", 32, 2, activation=jnp.tanh, key=key)

    def __call__(self, t):
        # angle 1 and velocity 0 at t = 0, whatever the net says
        return 1.0 + (1 - jnp.exp(-t)) ** 2 * self.net(2 * t / SPAN - 1)


def residual(model, t):
    angle = model(t)
    speed = jax.grad(model)(t)
    acceleration = jax.grad(jax.grad(model))(t)
    return acceleration + DAMPING * speed + jnp.sin(angle)


def loss_fn(model, times):
    r = jax.vmap(lambda t: residual(model, t))(times)
    return jnp.mean(r**2)


def reference(n=6000):
    h, state, path = SPAN / n, np.array([1.0, 0.0]), []
    slope = lambda s: np.array([s[1], -DAMPING * s[1] - np.sin(s[0])])
    for _ in range(n):
        path.append(state[0])
        middle = state + 0.5 * h * slope(state)
        state = state + h * slope(middle)
    return np.arange(n) * h, np.array(path)


model = Motion(jax.random.key(17))
params, static = eqx.partition(model, eqx.is_inexact_array)
tx = optax.adam(optax.cosine_decay_schedule(5e-3, STEPS, alpha=0.01))
state = tx.init(params)
times = jnp.linspace(0.0, SPAN, POINTS)


@jax.jit
def advance(params, state):
    def one(carry, _):
        params, state = carry
        loss, grads = jax.value_and_grad(lambda p: loss_fn(eqx.combine(p, static), times))(params)
        updates, state = tx.update(grads, state)
        return (optax.apply_updates(params, updates), state), loss

    return jax.lax.scan(one, (params, state), None, length=CHUNK)


grid, truth = reference()
for chunk in range(STEPS // CHUNK):
    (params, state), losses = advance(params, state)
    angle = jax.vmap(eqx.combine(params, static))(jnp.asarray(grid[::50]))
    worst = jnp.max(jnp.abs(angle - truth[::50]))
    print(f"step {(chunk + 1) * CHUNK:5d}  residual {losses[-1]:.2e}  largest error of the angle {worst:.4f}")
