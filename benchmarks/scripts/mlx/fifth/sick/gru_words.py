"""Next-word model with a GRU in MLX."""

import argparse
from functools import partial
from pydoc_data.topics import topics

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np


class WordModel(nn.Module):
    def __init__(self, vocab, dim=48, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, hidden)
        self.head = nn.Linear(hidden, vocab)

    def __call__(self, x):
        return self.head(self.gru(self.embed(x)))


def load(vocab_size):
    words = "".join(c.lower() if c.isalpha() else " " for k in sorted(topics) for c in topics[k] + " ").split()[:30_000]
    names, counts = np.unique(words, return_counts=True)
    keep = ["<unk>"] + names[np.argsort(-counts, kind="stable")[: vocab_size - 1]].tolist()
    index = {w: i for i, w in enumerate(keep)}
    return np.array([index.get(w, 0) for w in words], dtype=np.int32), keep


def to_rows(ids, length):
    n = (len(ids) - 1) // length
    return ids[: n * length].reshape(n, length), ids[1 : n * length + 1].reshape(n, length)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def iterate(x, y, batch_size, rng):
    order = rng.permutation(len(x))
    for i in range(0, len(order) - batch_size + 1, batch_size):
        idx = order[i : i + batch_size]
        yield mx.array(x[idx]), mx.array(y[idx])


def main(args):
    mx.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    ids, vocab = load(args.vocab)
    cut = int(0.9 * len(ids))
    x_train, y_train = to_rows(ids[:cut], args.length)
    x_val, y_val = (mx.array(a) for a in to_rows(ids[cut:], args.length))

    model = WordModel(len(vocab))
    mx.eval(model.parameters())
    schedule = optim.cosine_decay(args.lr, decay_steps=len(x_train) // args.batch_size)
    optimizer = optim.Adam(learning_rate=schedule)
    loss_and_grad = nn.value_and_grad(model, loss_fn)
    state = [model.state, optimizer.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x, y):
        loss, grads = loss_and_grad(model, x, y)
        optimizer.update(model, grads)
        return loss

    for epoch in range(1, args.epochs + 1):
        losses = []
        for x, y in iterate(x_train, y_train, args.batch_size, rng):
            loss = step(x, y)
            mx.eval(state)
            losses.append(loss.item())
        val = loss_fn(model, x_val, y_val).item()
        print(f"epoch {epoch}: train {np.mean(losses):.3f}  val {val:.3f}  perplexity {np.exp(val):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=500)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=5)
    main(parser.parse_args())
