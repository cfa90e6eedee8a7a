import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

HOURS = 4000


def stations(seed=2):
    """Sensor readings; wanted are the machine's load (a number) and its state (one of three)."""
    rng = np.random.default_rng(seed)
    load = rng.uniform(-1, 1, HOURS)
    state = rng.choice(3, HOURS, p=[0.5, 0.3, 0.2])
    mix = rng.normal(0, 1, (4, 20))
    hidden = np.stack([load, load**2, np.cos(2 * state + load), np.sin(2 * state - load)], 1)
    readings = hidden @ mix + rng.normal(0, 0.25, (HOURS, 20))
    return readings.astype(np.float32), load.astype(np.float32), state.astype(np.int32)


class TwoTasks(nnx.Module):
    """Computes in bfloat16, keeps its weights in float32; each task weighs itself by a learned variance."""

    def __init__(self, rngs):
        half = dict(dtype=jnp.bfloat16, param_dtype=jnp.float32, rngs=rngs)
        self.trunk1 = nnx.Linear(20, 64, **half)
        self.trunk2 = nnx.Linear(64, 32, **half)
        self.load = nnx.Linear(32, 1, **half)
        self.state = nnx.Linear(32, 3, **half)
        self.log_var = nnx.Param(jnp.zeros(2))

    def __call__(self, x):
        x = nnx.silu(self.trunk1(x))
        x = nnx.silu(self.trunk2(x))
        return self.load(x)[:, 0].astype(jnp.float32), self.state(x).astype(jnp.float32)


def tasks(model, x, load, state):
    load_hat, logits = model(x)
    mse = jnp.mean((load_hat - load) ** 2)
    ce = optax.softmax_cross_entropy_with_integer_labels(logits, state).mean()
    return mse, ce, jnp.mean(logits.argmax(-1) == state)


def loss_fn(model, x, load, state):
    mse, ce, _ = tasks(model, x, load, state)
    s = model.log_var[...]
    return 0.5 * jnp.exp(-s[0]) * mse + jnp.exp(-s[1]) * ce + 0.5 * jnp.sum(s)


@nnx.jit
def train_step(model, opt, x, load, state):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, load, state)
    opt.update(model, grads)
    return loss


x, load, state = stations()
x = (x - x[:3000].mean(0)) / x[:3000].std(0)
model = TwoTasks(nnx.Rngs(2))
epochs, batch = 25, 60
schedule = optax.warmup_cosine_decay_schedule(0.0, 2e-3, 50, epochs * 3000 // batch)
opt = nnx.Optimizer(model, optax.adamw(schedule, weight_decay=1e-3), wrt=nnx.Param)
rng = np.random.default_rng(2)
evaluate = nnx.jit(tasks)
for epoch in range(1, epochs + 1):
    losses = []
    for rows in rng.permutation(3000).reshape(-1, batch):
        losses.append(float(train_step(model, opt, x[rows], load[rows], state[rows])))
    if epoch % 5 == 0:
        mse, ce, acc = evaluate(model, x[3000:], load[3000:], state[3000:])
        print(f"epoch {epoch:2d}  joint {np.mean(losses):+.4f} | held out: mse {float(mse):.4f}  ce {float(ce):.4f}  acc {float(acc):.3f}")
