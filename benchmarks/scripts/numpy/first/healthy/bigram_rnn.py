"""A plain character RNN with backpropagation through time, after min-char-rnn."""

from pydoc_data.topics import topics

import numpy as np

rng = np.random.default_rng(0)
text = "".join(c.lower() for c in topics["specialnames"] if c.isascii())
text = " ".join(text.split())[:16_000]
chars = sorted(set(text))
vocab = len(chars)
ix = {c: i for i, c in enumerate(chars)}
ids = np.array([ix[c] for c in text])
split = int(0.9 * len(ids))
train_ids, val_ids = ids[:split], ids[split:]

hidden, seq_length = 64, 25
model = {
    "Wxh": rng.standard_normal((hidden, vocab)) * 0.1,
    "Whh": rng.standard_normal((hidden, hidden)) * 0.1,
    "Why": rng.standard_normal((vocab, hidden)) * 0.1,
    "bh": np.zeros(hidden),
    "by": np.zeros(vocab),
}
memory = {k: np.zeros_like(v) for k, v in model.items()}


def step_forward(i, h):
    h = np.tanh(model["Wxh"][:, i] + model["Whh"] @ h + model["bh"])
    y = model["Why"] @ h + model["by"]
    p = np.exp(y - y.max())
    return h, p / p.sum()


def loss_and_grads(inputs, targets, h):
    hs, ps, loss = [h], [], 0.0
    for i, t in zip(inputs, targets):
        h, p = step_forward(i, h)
        hs.append(h)
        ps.append(p)
        loss -= np.log(p[t])
    grads = {k: np.zeros_like(v) for k, v in model.items()}
    dh_next = np.zeros(hidden)
    for t in reversed(range(len(inputs))):
        dy = ps[t].copy()
        dy[targets[t]] -= 1
        grads["Why"] += np.outer(dy, hs[t + 1])
        grads["by"] += dy
        dh = model["Why"].T @ dy + dh_next
        draw = (1 - hs[t + 1] ** 2) * dh
        grads["bh"] += draw
        grads["Wxh"][:, inputs[t]] += draw
        grads["Whh"] += np.outer(draw, hs[t])
        dh_next = model["Whh"].T @ draw
    for g in grads.values():
        np.clip(g, -5, 5, out=g)
    return loss / len(inputs), grads, hs[-1]


def evaluate(sequence):
    h, loss = np.zeros(hidden), 0.0
    for i, t in zip(sequence[:-1], sequence[1:]):
        h, p = step_forward(i, h)
        loss -= np.log(p[t])
    return loss / (len(sequence) - 1)


def sample(n, seed="t"):
    h, i, out = np.zeros(hidden), ix[seed], seed
    for _ in range(n):
        h, p = step_forward(i, h)
        i = rng.choice(vocab, p=p)
        out += chars[i]
    return out


learning_rate = 0.05
for epoch in range(3):
    h, losses = np.zeros(hidden), []
    for p in range(0, len(train_ids) - seq_length - 1, seq_length):
        inputs = train_ids[p : p + seq_length]
        targets = train_ids[p + 1 : p + seq_length + 1]
        loss, grads, h = loss_and_grads(inputs, targets, h)
        losses.append(loss)
        for k in model:
            memory[k] += grads[k] ** 2
            model[k] -= learning_rate * grads[k] / np.sqrt(memory[k] + 1e-8)
    print(f"epoch {epoch}: train {np.mean(losses):.3f}  val {evaluate(val_ids):.3f}")
print(sample(80))
