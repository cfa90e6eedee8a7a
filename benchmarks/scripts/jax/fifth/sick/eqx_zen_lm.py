"""An Equinox GRU over characters, trained on slices of Python's help texts."""

from pydoc_data.topics import topics

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

LENGTH = 40


class GRULM(eqx.Module):
    embed: eqx.nn.Embedding
    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self, vocab, dim, hidden, key):
        k1, k2, k3 = jr.split(key, 3)
        self.embed = eqx.nn.Embedding(vocab, dim, key=k1)
        self.cell = eqx.nn.GRUCell(dim, hidden, key=k2)
        self.head = eqx.nn.Linear(hidden, vocab, key=k3)

    def __call__(self, ids):
        def step(h, x):
            h = self.cell(x, h)
            return h, h

        _, hs = jax.lax.scan(step, jnp.zeros(self.cell.hidden_size), jax.vmap(self.embed)(ids))
        return jax.vmap(self.head)(hs)


def load():
    text = "".join(c.lower() for c in topics["specialnames"] + topics["typesmapping"] if c.isascii())[:24_000]
    text = " ".join(text.split())
    chars = sorted(set(text))
    ids = np.array([chars.index(c) for c in text], dtype=np.int32)
    n = (len(ids) - 1) // LENGTH
    x = ids[: n * LENGTH].reshape(n, LENGTH)
    y = ids[1 : n * LENGTH + 1].reshape(n, LENGTH)
    return x, y, chars


def split(x, y, rng, share=0.15):
    order = rng.permutation(len(x))
    n_val = int(len(x) * share)
    val = order[:n_val]
    train = rng.permutation(len(x))[n_val:]
    return (x[train], y[train]), (x[val], y[val])


def loss_fn(model, x, y):
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@eqx.filter_jit
def make_step(model, opt_state, x, y, optim):
    loss, grads = eqx.filter_value_and_grad(loss_fn)(model, x, y)
    updates, opt_state = optim.update(grads, opt_state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), opt_state, loss


def main(epochs=14, batch_size=32):
    rng = np.random.default_rng(0)
    x, y, chars = load()
    (x_train, y_train), (x_val, y_val) = split(x, y, rng)
    print(f"{len(x_train)} slices for training, {len(x_val)} for validation")
    model = GRULM(len(chars), 24, 96, jr.key(0))
    optim = optax.adam(5e-3)
    opt_state = optim.init(eqx.filter(model, eqx.is_array))
    evaluate = eqx.filter_jit(loss_fn)
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(x_train))
        losses = []
        for i in range(0, len(order) - batch_size + 1, batch_size):
            idx = order[i : i + batch_size]
            model, opt_state, loss = make_step(model, opt_state, x_train[idx], y_train[idx], optim)
            losses.append(float(loss))
        if epoch % 2 == 0:
            print(f"epoch {epoch}: train {np.mean(losses):.3f}  val {float(evaluate(model, x_val, y_val)):.3f}")


if __name__ == "__main__":
    main()
