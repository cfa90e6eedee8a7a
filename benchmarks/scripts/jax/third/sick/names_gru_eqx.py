"""A character model of place names, one GRU cell in Equinox."""
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

HEAD = ["al", "bur", "cas", "dor", "el", "fen", "gran", "hol", "is", "kel", "lon", "mar"]
MIDDLE = ["", "", "a", "en", "ing", "o"]
TAIL = ["by", "don", "ford", "ham", "ley", "port", "stead", "ton", "wick"]
MAX_LEN = 48
PAD, BOS, EOS = 0, 1, 2


def build_corpus(rng):
    names = sorted({h + m + t for h, m, t in itertools.product(HEAD, MIDDLE, TAIL)})
    rng.shuffle(names)
    letters = sorted(set("".join(names)))
    code = {c: i + 3 for i, c in enumerate(letters)}
    ids = np.full((len(names), MAX_LEN), PAD, dtype=np.int32)
    for row, name in zip(ids, names):
        text = [BOS] + [code[c] for c in name] + [EOS]
        row[: len(text)] = text
    return ids, len(letters) + 3


class NameModel(eqx.Module):
    embed: eqx.nn.Embedding
    cell: eqx.nn.GRUCell
    out: eqx.nn.Linear

    def __init__(self, vocab, dim, hidden, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.embed = eqx.nn.Embedding(vocab, dim, key=k1)
        self.cell = eqx.nn.GRUCell(dim, hidden, key=k2)
        self.out = eqx.nn.Linear(hidden, vocab, key=k3)

    def __call__(self, ids):
        def body(state, token):
            state = self.cell(self.embed(token), state)
            return state, self.out(state)

        _, logits = jax.lax.scan(body, jnp.zeros(self.cell.hidden_size), ids)
        return logits


def loss_fn(model, ids):
    logits = jax.vmap(model)(ids[:, :-1])
    targets = ids[:, 1:]
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
    return losses.mean()


@eqx.filter_jit
def letter_accuracy(model, ids):
    guess = jnp.argmax(jax.vmap(model)(ids[:, :-1]), axis=-1)
    real = ids[:, 1:] != PAD
    return jnp.sum((guess == ids[:, 1:]) * real) / jnp.sum(real)


def main():
    rng = np.random.default_rng(5)
    ids, vocab = build_corpus(rng)
    train, val = ids[:480], ids[480:]
    model = NameModel(vocab, 16, 48, jax.random.PRNGKey(5))
    tx = optax.adam(2e-3)
    opt_state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, opt_state, batch):
        loss, grads = eqx.filter_value_and_grad(loss_fn)(model, batch)
        updates, opt_state = tx.update(grads, opt_state)
        return eqx.apply_updates(model, updates), opt_state, loss

    for epoch in range(12):
        order = rng.permutation(len(train))
        total = 0.0
        for i in range(0, len(train), 32):
            model, opt_state, loss = step(model, opt_state, train[order[i : i + 32]])
            total += float(loss)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: loss {total / 15:.4f}, letters right {float(letter_accuracy(model, val)):.3f}")


main()
