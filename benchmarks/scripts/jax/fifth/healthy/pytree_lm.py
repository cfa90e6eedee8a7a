"""Characters from a fixed window of the last ones (after Bengio et al. 2003), in plain JAX."""

from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np
import optax

CONTEXT = 8

text = " ".join("".join(c.lower() for c in topics["specialnames"] if c.isascii()).split())[:40_000]
chars = sorted(set(text))
ids = np.array([chars.index(c) for c in text], dtype=np.int32)
windows = np.lib.stride_tricks.sliding_window_view(ids, CONTEXT + 1)
cut = int(0.9 * len(windows))
train, val = windows[:cut], windows[cut + CONTEXT :]


def init_params(key, vocab, dim=16, hidden=128):
    k1, k2, k3 = jax.random.split(key, 3)
    n = CONTEXT * dim
    return {
        "embed": jax.random.normal(k1, (vocab, dim)) * 0.5,
        "hidden": {"w": jax.random.normal(k2, (n, hidden)) / jnp.sqrt(n), "b": jnp.zeros(hidden)},
        "out": {"w": jax.random.normal(k3, (hidden, vocab)) * 0.02, "b": jnp.zeros(vocab)},
    }


def forward(params, x):
    h = params["embed"][x].reshape(len(x), -1)
    h = jnp.tanh(h @ params["hidden"]["w"] + params["hidden"]["b"])
    return h @ params["out"]["w"] + params["out"]["b"]


def loss_fn(params, batch):
    logits = forward(params, batch[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, -1]).mean()


def main(epochs=4, batch_size=64, lr=2e-3):
    params = init_params(jax.random.key(0), len(chars))
    steps = epochs * (len(train) // batch_size)
    optimizer = optax.adamw(optax.cosine_decay_schedule(lr, steps), weight_decay=1e-3)
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    evaluate = jax.jit(loss_fn)
    rng = np.random.default_rng(0)
    for epoch in range(epochs):
        order = rng.permutation(len(train))
        losses = []
        for i in range(0, len(order) - batch_size + 1, batch_size):
            params, opt_state, loss = step(params, opt_state, train[order[i : i + batch_size]])
            losses.append(float(loss))
        print(f"epoch {epoch}: train {np.mean(losses):.4f}  val {float(evaluate(params, val)):.4f}")


if __name__ == "__main__":
    main()
