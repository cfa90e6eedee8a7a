"""Graph convolution: 900 papers, of which 300 have a known field. The whole graph is one batch, every step."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)


def citations(n, fields, words, seed):
    rng = np.random.default_rng(seed)
    field = rng.integers(0, fields, n)
    together = field[:, None] == field[None, :]
    links = np.triu(rng.random((n, n)) < np.where(together, 0.012, 0.002), 1)
    links = (links | links.T).astype(np.float32) + np.eye(n, dtype=np.float32)
    habit = rng.normal(0, 0.45, (fields, words))
    text = habit[field] + rng.normal(0, 1, (n, words))
    degree = links.sum(1)
    return text.astype(np.float32), links / np.sqrt(degree[:, None] * degree[None, :]), field.astype(np.int32), rng


class GraphNet(nn.Module):
    def __init__(self, words, hidden, fields):
        super().__init__()
        self.first = nn.Linear(words, hidden)
        self.second = nn.Linear(hidden, fields)
        self.drop = nn.Dropout(0.4)

    def __call__(self, x, links):
        x = nn.relu(links @ self.first(self.drop(x)))
        return links @ self.second(self.drop(x))


def loss_fn(model, x, links, y, known):
    losses = nn.losses.cross_entropy(model(x, links), y)
    return mx.sum(losses * known) / mx.sum(known)


def accuracy(logits, y, rows):
    return (mx.sum((mx.argmax(logits, axis=-1) == y) * rows) / mx.sum(rows)).item()


text, links, field, rng = citations(900, 4, 40, seed=73)
order = rng.permutation(900)
parts = []
for rows in np.split(order, [300, 550]):
    mask = np.zeros(900, np.float32)
    mask[rows] = 1.0
    parts.append(mx.array(mask))
known, val, test = parts
x, links, y = mx.array(text), mx.array(links), mx.array(field)

mx.random.seed(73)
model = GraphNet(40, 16, 4)
optimizer = optim.AdamW(learning_rate=2e-3, weight_decay=0.1)
step = nn.value_and_grad(model, loss_fn)
for i in range(1, 241):
    model.train()
    loss, grads = step(model, x, links, y, known)
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    if i % 30 == 0:
        model.eval()
        logits = model(x, links)
        print(
            f"step {i:3d}  loss {loss.item():.4f}  val loss {loss_fn(model, x, links, y, val).item():.4f}"
            f"  val acc {accuracy(logits, y, val):.3f}"
        )
model.eval()
print(f"test accuracy {accuracy(model(x, links), y, test):.3f}")
