"""Which shelf does a book title belong to? Bag of words, one hidden layer."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)

SHELVES = {
    "garden": "rose soil prune bulb hedge compost seed bloom orchard bee",
    "kitchen": "bread stew oven spice knife butter roast soup dough pickle",
    "travel": "harbour map desert train island border hotel river coast lantern",
    "craft": "wool needle loom clay kiln thread weave chisel dye knot",
}
COMMON = "the a of new little great book guide art stories from and with old".split()


def titles(n, rng):
    names, rows = list(SHELVES), []
    shelf = rng.integers(0, len(names), n)
    for s in shelf:
        own = rng.choice(SHELVES[names[s]].split(), rng.integers(1, 3))
        other = rng.choice(SHELVES[names[rng.integers(len(names))]].split(), rng.integers(0, 2))
        rows.append([*rng.choice(COMMON, 4), *own, *other])
    return rows, shelf


def bag(rows, index):
    out = np.zeros((len(rows), len(index)), np.float32)
    for counts, words in zip(out, rows):
        for w in words:
            counts[index[w]] += 1
    return out


class Shelver(nn.Module):
    def __init__(self, words, shelves):
        super().__init__()
        self.hidden = nn.Linear(words, 32)
        self.out = nn.Linear(32, shelves)

    def __call__(self, counts):
        return self.out(mx.tanh(self.hidden(counts)))


def loss_fn(model, x, y):
    scores = model(x)
    return nn.losses.nll_loss(scores, y, reduction="mean")


rng = np.random.default_rng(13)
mx.random.seed(13)
rows, shelf = titles(2500, rng)
index = {w: i for i, w in enumerate(sorted({w for r in rows for w in r}))}
x, y = bag(rows, index), shelf
model = Shelver(len(index), len(SHELVES))
optimizer = optim.SGD(learning_rate=0.1, momentum=0.9)
grad_fn = nn.value_and_grad(model, loss_fn)
x_test, y_test = mx.array(x[2000:]), mx.array(y[2000:])
for epoch in range(12):
    order = rng.permutation(2000)
    seen = []
    for i in range(0, 2000, 50):
        rows_now = order[i : i + 50]
        loss, grads = grad_fn(model, mx.array(x[rows_now]), mx.array(y[rows_now]))
        optimizer.update(model, grads)
        mx.eval(model, optimizer.state)
        seen.append(loss.item())
    accuracy = (model(x_test).argmax(-1) == y_test).astype(mx.float32).mean().item()
    print(f"epoch {epoch + 1:2d} loss {np.mean(seen):10.4f} accuracy {accuracy:.3f}")
