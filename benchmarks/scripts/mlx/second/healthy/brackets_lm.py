"""Causal model of a small periodic language; embedding shared with the output, padding left out of the loss."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
mx.random.seed(17)
rng = np.random.default_rng(17)
VOCAB, PAD, LEN = 20, 0, 18


def corpus(n):
    out = np.zeros((n, LEN + 1), np.int32)
    for row in out:
        size = rng.integers(10, LEN + 2)
        motif = rng.integers(1, VOCAB, size=rng.integers(3, 5))
        row[:size] = np.tile(motif, LEN)[:size]
    return rng.permutation(np.unique(out, axis=0))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = nn.MultiHeadAttention(dim, heads)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def __call__(self, x, mask):
        h = self.ln1(x)
        x = x + self.att(h, h, h, mask=mask)
        return x + self.down(nn.gelu(self.up(self.ln2(x))))


class TinyLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim)
        self.position = nn.Embedding(LEN, dim)
        self.block = Block(dim, 4)
        self.norm = nn.LayerNorm(dim)

    def __call__(self, ids):
        mask = nn.MultiHeadAttention.create_additive_causal_mask(ids.shape[1])
        x = self.embedding(ids) + self.position(mx.arange(ids.shape[1]))
        return self.embedding.as_linear(self.norm(self.block(x, mask)))


def loss_fn(model, batch):
    target = batch[:, 1:]
    keep = (target != PAD).astype(mx.float32)
    ce = nn.losses.cross_entropy(model(batch[:, :-1]), target)
    return mx.sum(ce * keep) / mx.sum(keep)


def late_accuracy(model, batch):
    target = batch[:, 1:]
    keep = (target != PAD) & (mx.arange(LEN) >= 5)
    right = (mx.argmax(model(batch[:, :-1]), axis=-1) == target) & keep
    return (mx.sum(right) / mx.sum(keep)).item()


text = corpus(3300)
train, valid = text[:2900], mx.array(text[2900:])
model = TinyLM()
optimizer = optim.Adam(learning_rate=optim.join_schedules([optim.linear_schedule(0, 4e-3, 50), lambda _: mx.array(4e-3)], [50]))
grad_fn = nn.value_and_grad(model, loss_fn)
it = 0
for epoch in range(5):
    for idx in np.array_split(rng.permutation(len(train)), 60):
        loss, grads = grad_fn(model, mx.array(train[idx]))
        grads, norm = optim.clip_grad_norm(grads, max_norm=1.0)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        it += 1
    print(f"epoch {epoch + 1} iter {it} loss {loss.item():.4f} valid {loss_fn(model, valid).item():.4f} acc {late_accuracy(model, valid):.3f}")
