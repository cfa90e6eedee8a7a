# Which of five gestures was made? 24 readings of a 3-axis sensor each.
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import random

STEPS, AXES, CLASSES, HIDDEN = 24, 3, 5, 40


def gestures(n, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, CLASSES, n)
    t = np.linspace(0, 1, STEPS)[None, :]
    speed = 1.0 + kind[:, None] * 0.7 + rng.normal(0, 0.1, (n, 1))
    phase = rng.uniform(0, 2 * np.pi, (n, 1))
    wave = 2 * np.pi * speed * t + phase
    signal = np.stack([np.sin(wave), np.cos(wave), np.sin(2 * wave) * (kind[:, None] % 2)], axis=-1)
    return (signal + rng.normal(0, 0.15, signal.shape)).astype(np.float32), kind.astype(np.int32)


def init(key):
    a, b, c = random.split(key, 3)
    ortho = jax.nn.initializers.orthogonal()
    glorot = jax.nn.initializers.glorot_uniform()
    return dict(
        wx=glorot(a, (AXES, HIDDEN)),
        wh=ortho(b, (HIDDEN, HIDDEN)),
        bh=jnp.zeros(HIDDEN),
        wo=glorot(c, (HIDDEN, CLASSES)),
        bo=jnp.zeros(CLASSES),
    )


def rnn(params, signal):
    batch = signal.shape[0]
    time_major = signal.reshape(STEPS, batch, AXES)

    def tick(h, frame):
        h = jnp.tanh(frame @ params["wx"] + h @ params["wh"] + params["bh"])
        return h, h

    _, states = jax.lax.scan(tick, jnp.zeros((batch, HIDDEN)), time_major)
    return states.mean(axis=0) @ params["wo"] + params["bo"]


def loss_fn(params, signal, kind):
    return optax.softmax_cross_entropy_with_integer_labels(rnn(params, signal), kind).mean()


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))


@jax.jit
def train_step(params, opt_state, signal, kind):
    loss, grads = jax.value_and_grad(loss_fn)(params, signal, kind)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


if __name__ == "__main__":
    x_train, y_train = gestures(2000, 0)
    x_test, y_test = gestures(500, 1)
    params = init(random.PRNGKey(2))
    opt_state = optimizer.init(params)
    rng = np.random.default_rng(3)
    for epoch in range(20):
        order = rng.permutation(2000).reshape(-1, 50)
        loss = np.mean([0.0])
        history = []
        for rows in order:
            params, opt_state, loss = train_step(params, opt_state, x_train[rows], y_train[rows])
            history.append(float(loss))
        if epoch % 4 == 3:
            right = (rnn(params, x_test).argmax(-1) == y_test).mean()
            print(f"epoch {epoch + 1}: loss {np.mean(history):.3f}, test accuracy {float(right):.3f}")
