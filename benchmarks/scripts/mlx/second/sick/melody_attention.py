"""A one-block transformer that continues melodies; judged by letting it play on from the first notes."""
import itertools

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
NOTES, LENGTH, DIM = 16, 16, 32
rng = np.random.default_rng(12)
mx.random.seed(12)


def melodies():
    songs = []
    for start in range(NOTES):
        for jumps in itertools.product(range(1, 8), repeat=2):
            songs.append(start + np.concatenate([[0], np.cumsum(np.tile(jumps, LENGTH)[:LENGTH])]))
    return rng.permutation(np.array(songs) % NOTES).astype(np.int32)


class Player(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(NOTES, DIM)
        self.place = nn.Embedding(LENGTH, DIM)
        self.norm1 = nn.LayerNorm(DIM)
        self.attention = nn.MultiHeadAttention(DIM, 4)
        self.norm2 = nn.LayerNorm(DIM)
        self.up = nn.Linear(DIM, 64)
        self.down = nn.Linear(64, DIM)
        self.out = nn.Linear(DIM, NOTES)

    def __call__(self, ids):
        x = self.note(ids) + self.place(mx.arange(ids.shape[1]))
        h = self.norm1(x)
        x = x + self.attention(h, h, h)
        x = x + self.down(nn.gelu(self.up(self.norm2(x))))
        return self.out(x)


def loss_fn(model, batch):
    return nn.losses.cross_entropy(model(batch[:, :-1]), batch[:, 1:], reduction="mean")


def play_on(model, songs, known=4):
    ids = mx.array(songs[:, :known])
    for _ in range(LENGTH + 1 - known):
        nxt = mx.argmax(model(ids)[:, -1], axis=-1).astype(mx.int32)
        ids = mx.concatenate([ids, nxt[:, None]], axis=1)
    return float((np.array(ids)[:, known:] == songs[:, known:]).mean())


model = Player()
optimizer = optim.Adam(learning_rate=3e-3)
grad_fn = nn.value_and_grad(model, loss_fn)
songs = melodies()
train_songs, test_songs = songs[:640], songs[640:]
for it in range(1, 501):
    loss, grads = grad_fn(model, mx.array(train_songs[rng.choice(640, 48, replace=False)]))
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    if it % 50 == 0:
        test_loss = loss_fn(model, mx.array(test_songs)).item()
        print(f"{it:4d} loss {loss.item():.4f} test loss {test_loss:.4f} notes right when playing on {play_on(model, test_songs):.3f}")
